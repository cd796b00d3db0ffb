/* SPDX-License-Identifier: GPL-2.0-only */
/* What the user may choose, read once when CRIU loads the plugin: from a file, from
 * the environment, which goes before it, and from options of CRIU 4.3 and later,
 * which go before both. */
#ifndef AMDGPU_PLUGIN_CRIU_OPTIONS_H
#define AMDGPU_PLUGIN_CRIU_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Lines "key = value", empty ones, and ones that begin with '#'. */
#define OPTIONS_FILE "/etc/criu/amdgpu_plugin.conf"

/* Checks of the mapper that can be switched off: field, environment variable. In the file and as an
 * option KFD_FW_VER_CHECK is fw-ver-check, and so on. */
#define OPTION_SWITCHES(X)                      \
	X(check_fw_version, KFD_FW_VER_CHECK)   \
	X(check_sdma_fw, KFD_SDMA_FW_VER_CHECK) \
	X(check_caches, KFD_CACHES_COUNT_CHECK) \
	X(check_num_gws, KFD_NUM_GWS_CHECK)     \
	X(check_vram_size, KFD_VRAM_SIZE_CHECK) \
	X(check_numa, KFD_NUMA_CHECK)           \
	X(check_capability, KFD_CAPABILITY_CHECK)

/* How contents are copied, see content/content.h. */
struct content_settings {
	/* The most staging memory of one GPU; at least one page is used. */
	uint64_t staging_bytes;
	/* How long one step of the copy engine may take. */
	uint64_t copy_timeout_s;
	/* Leave holes in files where contents are zero. */
	bool skip_zeros;
	/* Compute checksums at a dump, compare them at a restore. */
	bool checksum;
};

/* The options of the mapper. */
struct map_options {
#define OPTION_FIELD(field, variable) bool field;
	OPTION_SWITCHES(OPTION_FIELD)
#undef OPTION_FIELD
	/* AMDGPU_DEVICE_MAP: SAVED=PRESENT pairs as the user wrote them; NULL: none. */
	char *device_map;
	/* Pairs may name saved GPUs of other processes. No option: the caller of map_decide() sets
	 * it. */
	bool device_map_is_for_all;
};

struct options {
	struct map_options map;
	/* KFD_MAX_BUFFER_SIZE and KFD_COPY_TIMEOUT (0 there means
	 * the default), AMDGPU_SKIP_ZEROS, AMDGPU_CHECKSUM. */
	struct content_settings content;
	/* AMDGPU_PARALLEL_RESTORE: contents are filled in by CRIU's main process, where it can. */
	bool parallel_restore;
	/* AMDGPU_FORCE: what is refused because it would not come back right is dumped all the
	 * same, with a warning. */
	bool force;
};

/* What does not parse is -EINVAL, what is too large -ERANGE, after a line that
 * names source and value. */
int options_read(struct options *ret_options);
/* The same with another file. */
int options_read_with_file(const char *path, struct options *ret_options);
void options_done(struct options *options);

#endif
