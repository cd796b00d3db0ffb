/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the device mappings of one restored task move to: the offsets of a BO and the file that it
 * may be mapped through are new after each restore.
 *
 * A BO can be mapped only through the very open file that it was restored through, so the table
 * keeps those files, numbered out of the task's way, until the last mapping has been asked for.
 * Where an image does not say how many mappings there are, as those of CRIU's own plugin, they stay
 * open in the restored task. */
#ifndef AMDGPU_PLUGIN_RESTORE_MAPPINGS_H
#define AMDGPU_PLUGIN_RESTORE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One BO. Devices are named by their minor at the dump, 0 for /dev/kfd. */
struct vma_bo {
	uint32_t saved_minor;
	uint64_t addr;
	uint64_t size;
	uint64_t old_offset;
	uint64_t new_offset;
};

struct vma_file {
	uint32_t saved_minor;
	int fd;
	/* The task has a descriptor of the same file. */
	bool shared;
};

/* actual gpu_ids, which offsets of /dev/kfd carry. */
struct vma_gpu {
	uint32_t old_id;
	uint32_t new_id;
};

/* How many of the lowest free descriptors a run looks at. */
#define VMA_FREE_FDS 2

struct mappings {
	struct vma_bo *bos;
	size_t num_bos;
	/* They are in the order of their addresses. */
	bool sorted;
	struct vma_file *files;
	size_t num_files;
	struct vma_gpu *gpus;
	size_t num_gpus;
	/* Mappings still to come; -1: the image does not tell. */
	int64_t num_left;
	/* See host_copies_mapping_fd(). */
	bool host_copies;
	/* The last descriptor given to CRIU, for which path, and the lowest numbers then free. */
	const char *run_path;
	int run_fd;
	int run_free_fds[VMA_FREE_FDS];
};

/* -ENOMEM. mappings_add_file() takes the descriptor over, on failure too. */
int mappings_add_bo(struct mappings *table, const struct vma_bo *bo);
int mappings_add_file(struct mappings *table, uint32_t saved_minor, int fd);
int mappings_add_gpu(struct mappings *table, uint32_t old_id, uint32_t new_id);
void mappings_done(struct mappings *table);

/* The kept file of a device, borrowed; -1: none. */
int mappings_find_file(const struct mappings *table, uint32_t saved_minor);
/* The same, which is the caller's from now on. */
int mappings_take_file(struct mappings *table, uint32_t saved_minor);
/* Notes that the task has a descriptor of that file, and tells it. */
void mappings_note_shared(struct mappings *table, uint32_t saved_minor);
bool mappings_is_shared(const struct mappings *table, uint32_t saved_minor);

/* Answers CRIU's question for one mapping, with the arguments of its hook: the new offset, and a
 * descriptor for CRIU. -ENOTSUP: not a device of ours; -EINVAL after a line: it cannot be mapped.
 * @path must be CRIU's own string, as its address tells one file of CRIU's from another. */
int mappings_update(struct mappings *table, const char *path, uint64_t addr, uint64_t old_offset,
		    uint64_t *ret_new_offset, int *ret_fd);

#endif
