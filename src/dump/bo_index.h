/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPU of a process's BO, and where the BO is found by whoever maps it: in the address space of
 * that GPU's render node, at an offset that is the object's own. Whoever has imported it for the
 * same GPU has the same one there, on all kernels. Imported for another GPU it has a place of its
 * own there, but its dma-buf is the same file, where kernels keep one for each object (6.18). */
#ifndef AMDGPU_PLUGIN_DUMP_BO_INDEX_H
#define AMDGPU_PLUGIN_DUMP_BO_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct kfd_state;
struct topology;
struct topology_node;

struct bo_index_entry {
	uint32_t render_minor;
	/* In the state's list of BOs. */
	uint32_t index;
	/* In bytes. */
	uint64_t offset;
	uint64_t size;
	/* Of its dma-buf; those of one object are one file. */
	uint64_t inode;
};

/* Of all BOs with contents whose GPU is in the topology; by minor and offset. All zero
 * at first. */
struct bo_index {
	struct bo_index_entry *places;
	/* The same, by inode. */
	const struct bo_index_entry **by_inode;
	size_t count;
};

/* The GPU, here, that the process knows as @user_gpu_id; NULL: none. */
const struct topology_node *bo_index_find_gpu(const struct kfd_state *state,
					      const struct topology *topology,
					      uint32_t user_gpu_id);

/* The BOs have their dma-bufs. -ENOMEM; what fstat() says of these. */
int bo_index_init(const struct kfd_state *state, const struct topology *topology,
		  struct bo_index *ret_places);
void bo_index_done(struct bo_index *places);

/* The BO that has the byte at @offset; the first of those that are one object. NULL: none. */
const struct bo_index_entry *bo_index_find_offset(const struct bo_index *places,
						  uint32_t render_minor, uint64_t offset);
/* The BO whose dma-buf is that file; the first of those that are one object. NULL: none. */
const struct bo_index_entry *bo_index_find_inode(const struct bo_index *places, uint64_t inode);

#endif
