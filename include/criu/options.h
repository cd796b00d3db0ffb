/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of the plugin. CRIU reads them once, when it loads the plugin: from a file, from the
 * environment, which overrides the file, and from CRIU's --plugin-option (CRIU 4.3), which
 * overrides both. */
#ifndef AMDGPU_PLUGIN_CRIU_OPTIONS_H
#define AMDGPU_PLUGIN_CRIU_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The file has lines "key = value", empty lines, and comments, which begin with '#'. */
#define OPTIONS_FILE "/etc/criu/amdgpu_plugin.conf"

/* The options, one a row: field, environment variable, kind, default. Fields, parser and defaults
 * come from these rows. A row is a switch (bool), a number of bytes or seconds (uint64_t; 0 selects
 * the default), a wait (uint64_t, seconds), a size (uint64_t; bytes, or OPTION_SHARE with
 * percents), or text (char *; the default is NULL). The key in the file and for CRIU is the
 * variable without its first word, in lower case and with dashes: KFD_FW_VER_CHECK is fw-ver-check.
 */

/* Checks of the mapper: GPUs that do not pass are not mapped to each other. */
#define MAP_CHECKS(X)                                         \
	X(check_fw_version, KFD_FW_VER_CHECK, SWITCH, true)   \
	X(check_sdma_fw, KFD_SDMA_FW_VER_CHECK, SWITCH, true) \
	X(check_caches, KFD_CACHES_COUNT_CHECK, SWITCH, true) \
	X(check_num_gws, KFD_NUM_GWS_CHECK, SWITCH, true)     \
	X(check_vram_size, KFD_VRAM_SIZE_CHECK, SWITCH, true) \
	X(check_numa, KFD_NUMA_CHECK, SWITCH, true)           \
	X(check_xgmi, KFD_XGMI_CHECK, SWITCH, true)           \
	X(check_capability, KFD_CAPABILITY_CHECK, SWITCH, true)

#define MAP_OPTIONS(X)                                 \
	MAP_CHECKS(X)                                  \
	/* SAVED=PRESENT pairs of GPUs, not parsed. */ \
	X(device_map, AMDGPU_DEVICE_MAP, TEXT, 0)

/* A step of the copy engine is some MiB, which takes milliseconds. */
#define CONTENT_OPTIONS(X)                                                            \
	/* The most staging memory of one GPU; the plugin uses at least six pages. 0: \
	 * what slots_choose_bytes() finds. */                                        \
	X(staging_bytes, KFD_MAX_BUFFER_SIZE, BYTES, 0)                               \
	/* The time limit for one step of the copy engine. */                         \
	X(copy_timeout_s, KFD_COPY_TIMEOUT, SECONDS, 60)                              \
	/* Leave holes in files where contents are zero. */                           \
	X(skip_zeros, AMDGPU_SKIP_ZEROS, SWITCH, true)                                \
	/* Compute checksums at a dump, compare them at a restore. */                 \
	X(checksum, AMDGPU_CHECKSUM, SWITCH, true)

#define OTHER_OPTIONS(X)                                                           \
	/* CRIU's main process restores the contents of BOs, if it can. */         \
	X(parallel_restore, AMDGPU_PARALLEL_RESTORE, SWITCH, true)                 \
	/* Contents are saved while CRIU saves other things, if it can wait. */    \
	X(parallel_dump, AMDGPU_PARALLEL_DUMP, SWITCH, true)                       \
	/* How long a dump waits for the end of kernels that it would lose. */     \
	X(drain_s, AMDGPU_DRAIN, WAIT, 10)                                         \
	/* Memory for contents that are written while the job runs again. */       \
	X(dump_memory, AMDGPU_DUMP_MEMORY, SIZE, 0)                                \
	/* The directory of an older dump, with which files may share contents. */ \
	X(base, AMDGPU_BASE, TEXT, 0)                                              \
	/* Dump with a warning what a rule refuses, unless no restore is possible. \
	 * At a restore, allow that another GPU has the gpu_id of a GPU, and that  \
	 * the same card has other properties. */                                  \
	X(force, AMDGPU_FORCE, SWITCH, false)

/* A size with this bit is a part of the free memory, in percent. The rest is for CRIU and for the
 * job. */
#define OPTION_SHARE     (1ULL << 63)
#define OPTION_SHARE_MAX 90u

#define OPTION_TYPE_SWITCH                         bool
#define OPTION_TYPE_BYTES                          uint64_t
#define OPTION_TYPE_SIZE                           uint64_t
#define OPTION_TYPE_SECONDS                        uint64_t
#define OPTION_TYPE_WAIT                           uint64_t
#define OPTION_TYPE_TEXT                           char *
#define OPTION_FIELD(field, variable, kind, value) OPTION_TYPE_##kind field;

/* How contents are copied, see content/content.h. */
struct content_settings {
	CONTENT_OPTIONS(OPTION_FIELD)
	/* No option: content_save() and content_load() start no thread. */
	bool one_thread;
};

/* How GPUs are mapped, see map/map.h. */
struct map_options {
	MAP_OPTIONS(OPTION_FIELD)
	/* AMDGPU_FORCE, which is an option of others, too. */
	bool force;
};

struct options {
	struct map_options map;
	struct content_settings content;
	OTHER_OPTIONS(OPTION_FIELD)
};

/* Reads all options. -EINVAL: a key is unknown or a value does not parse. -ERANGE: a number is too
 * large. Logs on error, with the source and the value. Free the result with options_done(). */
int options_read(struct options *ret_options);
/* The same with another file. */
int options_read_with_file(const char *path, struct options *ret_options);
void options_done(struct options *options);

#endif
