/* SPDX-License-Identifier: GPL-2.0-only */
/* The device mappings of a restored task. Each restore gives a BO a new mmap offset and a new open
 * file, so CRIU asks about each mapping (UPDATE_VMA_MAP) and mappings_update() answers.
 *
 * The plugin keeps the open files (gpu_files.h) until the last answer. If the image does not say
 * how many mappings there are, as the images of CRIU's own plugin, the files stay open in the task.
 */
#ifndef AMDGPU_PLUGIN_MEMORY_MAPPINGS_H
#define AMDGPU_PLUGIN_MEMORY_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "session/restore_session.h"

/* A BO that the task may map. A device is named by its minor at the dump, 0 for /dev/kfd. */
struct mapped_bo {
	uint32_t saved_minor;
	uint64_t addr;
	uint64_t size;
	uint64_t old_offset;
	uint64_t new_offset;
};

/* The gpu_ids that are part of mmap offsets of /dev/kfd. */
struct mapped_gpu {
	/* The id in offsets at the dump: the actual id (up to Linux 7.2), or the id that the
	 * process knows. */
	uint32_t old_id;
	uint32_t user_id;
	/* The id in offsets here: mmap() takes one of the two, see gpu_ids.h. */
	uint32_t new_id;
};

/* -ENOMEM. */
int mappings_add_bo(struct mappings *mappings, const struct mapped_bo *bo);
int mappings_add_gpu(struct mappings *mappings, const struct mapped_gpu *gpu);
void mappings_done(struct mappings *mappings);

/* Whether CRIU may still ask about a mapping. If not, no hook is certain to run in the task after
 * its files have been restored. */
static inline bool mappings_pending(const struct mappings *mappings)
{
	return mappings->num_pending != 0;
}

/* Answers UPDATE_VMA_MAP, with the arguments of that hook: the new offset, and a descriptor. After
 * the last answer all files are closed. -ENOTSUP: not a device of the task's GPUs. Logs on other
 * errors; -EINVAL: the mapping cannot be restored. @path must be CRIU's own string, because the
 * address of the string identifies an open file. */
int mappings_update(struct mappings *mappings, const char *path, uint64_t addr, uint64_t old_offset,
		    uint64_t *ret_new_offset, int *ret_fd);

#endif
