/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds a process's BO by mmap offset, by dma-buf or by address, so that mappings and shared
 * buffers are recognised. An object has one mmap offset in the render nodes of a PCI device: the
 * partitions of a device (CPX mode) are GPUs with a render node each, and one space of offsets.
 * Imports on the same device share this offset on all kernels. An import on another device has
 * another offset there, but the inode of its dma-buf is the same on kernels that keep one dma-buf
 * for each object (6.18). */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_BO_INDEX_H
#define AMDGPU_PLUGIN_PREFLIGHT_BO_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct bo_index;
struct dumped_process;
struct topology_node;

struct bo_index_entry {
	/* topology_pci_device() of its GPU. */
	uint64_t device;
	/* Index of the BO in the state's list. */
	uint32_t index;
	/* In bytes. */
	uint64_t offset;
	uint64_t size;
	/* Inode of the BO's dma-buf. */
	uint64_t inode;
	/* On the GPU; 0 if KFD does not map the BO. */
	uint64_t addr;
};

/* The present GPU that the process knows as @user_gpu_id, or NULL if the process knows no such GPU.
 */
const struct topology_node *bo_index_gpu_of(const struct dumped_process *process,
					    uint32_t user_gpu_id);

/* Fills in process->bo_index anew, whose BOs have their dma-bufs. -ENOMEM, or the error of fstat()
 * on a dma-buf; then bo_index_done() must follow, too. */
int bo_index_init(struct dumped_process *process);
void bo_index_done(struct bo_index *index);

/* The BO that has the byte at @offset; of several BOs that are one object, the first. NULL if no
 * BO has it. */
const struct bo_index_entry *bo_index_find_offset(const struct bo_index *index, uint64_t device,
						  uint64_t offset);
/* The first of the *@ret_count BOs that begin at the address, or NULL if no BO does. */
const struct bo_index_entry *const *bo_index_find_address(const struct bo_index *index,
							  uint64_t addr, size_t *ret_count);
/* The BO whose dma-buf has the inode; of several BOs that are one object, the first. */
const struct bo_index_entry *bo_index_find_inode(const struct bo_index *index, uint64_t inode);

#endif
