/* SPDX-License-Identifier: GPL-2.0-only */
/* The GEM handles of the open file @fd of a render node, and their mappings on its GPU. The
 * functions log nothing. */
#ifndef AMDGPU_PLUGIN_KERNEL_RENDER_NODE_GEM_H
#define AMDGPU_PLUGIN_KERNEL_RENDER_NODE_GEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A GEM handle as the kernel lists it. */
struct render_gem {
	uint32_t handle;
	/* RENDER_GEM_... */
	uint32_t flags;
	uint64_t size;
	uint64_t domains;
	uint64_t alloc_flags;
	/* Alignment in pages or bytes, depending on the kernel. */
	uint64_t alignment;
};

/* The object is that of another device. */
#define RENDER_GEM_IS_IMPORT 1u

/* Of the kernel, in bytes (drm_amdgpu_gem_metadata). */
#define RENDER_METADATA_MAX 256

struct render_mapping {
	uint64_t addr;
	uint64_t size;
	/* Offset in the object. */
	uint64_t offset;
	/* AMDGPU_VM_... */
	uint64_t flags;
};

/* The handles in ascending order. The caller frees the list. Where the kernel does not list them
 * (before Linux 6.18), the function tries each number, and the entries have no flags: handles
 * behind 4096 numbers that are free are missing. */
int render_node_gem_list(int fd, struct render_gem **ret_list, size_t *ret_count);
/* The mappings of a handle, those of KFD too. The caller frees the list. -EINVAL: the kernel does
 * not list them (before Linux 6.18). */
int render_node_gem_mappings(int fd, uint32_t handle, struct render_mapping **ret_list,
			     size_t *ret_count);
/* Whether the kernel lists both, for the render node with @minor. */
bool render_node_gem_can_list(uint32_t minor);
/* The offset by which mmap() of this render node finds the object. */
int render_node_gem_offset(int fd, uint32_t handle, uint64_t *ret_offset);
/* The inode of the object's dma-buf. An object without a dma-buf gets one. */
int render_node_gem_inode(int fd, uint32_t handle, uint64_t *ret_inode);
/* The handle of the dma-buf's object: the file's only one, or the lowest number that is free. */
int render_node_gem_import(int fd, int dmabuf_fd, uint32_t *ret_handle);
/* Takes the lowest number that is free, with an object of one page. */
int render_node_gem_take(int fd, uint32_t *ret_handle);
int render_node_gem_close(int fd, uint32_t handle);
/* Whether GEM_VA knows the flags of @mapping. */
bool render_node_gem_can_map(const struct render_mapping *mapping);
/* Adds @mapping. -EINVAL: it overlaps another one, or is outside of the object. */
int render_node_gem_map(int fd, uint32_t handle, const struct render_mapping *mapping);

/* What a program has noted at an object (amdgpu_bo_set_metadata() of libdrm). ROCr 7.2 notes four
 * bytes at each buffer of which it has made an IPC handle, and an importer compares them. */
struct render_metadata {
	uint64_t flags;
	uint64_t tiling;
	/* In bytes; 0 without metadata. */
	uint32_t size;
	uint8_t data[RENDER_METADATA_MAX];
};

int render_node_gem_get_metadata(int fd, uint32_t handle, struct render_metadata *ret_metadata);
int render_node_gem_set_metadata(int fd, uint32_t handle, const struct render_metadata *metadata);

/* What the render node @fd tells of the BO of @dmabuf_fd. */
struct render_bo {
	/* Flags with which the BO was made (AMDGPU_GEM_CREATE_*). */
	uint64_t flags;
	/* Offset for mmap(), or 0 if the CPU may not map the BO. A BO of another PCI device has
	 * another offset in each open file. */
	uint64_t mmap_offset;
};

int render_node_gem_read(int fd, int dmabuf_fd, struct render_bo *ret_bo);

#endif
