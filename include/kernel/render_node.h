/* SPDX-License-Identifier: GPL-2.0-only */
/* Render nodes, /dev/dri/renderD*: the device files of GPUs, and the GEM handles of an open one
 * (@fd) with their mappings on its GPU. The functions log nothing. */
#ifndef AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H
#define AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct topology;
struct topology_node;

/* Lower minors are primary and control nodes. The kernel has 20 bits for minors (drm_drv.c). */
#define RENDER_NODE_MINOR_FIRST 128
#define RENDER_NODE_MINOR_LAST  0xfffff

/* Whether the device is a render node, of any driver. */
bool render_node_is_device(dev_t device, uint32_t *ret_minor);
/* The GPU of the render node, or NULL if no GPU of @topology has the device. */
const struct topology_node *render_node_find_gpu(const struct topology *topology, dev_t device);
/* The same for descriptor @number of process @pid. The errors are those of proc_stat_fd(). */
int render_node_find_open(const struct topology *topology, pid_t pid, int number,
			  const struct topology_node **ret_gpu);

/* Whether the CPU can map the BO at @offset through the file @fd. A BO of KFD can be mapped through
 * the file of its compute VM, and through files that have a GEM handle of it. */
bool render_node_can_map(int fd, uint64_t offset);

/* The device number of the render node with @minor. */
dev_t render_node_device(uint32_t minor);

/* Opens the render node with @minor, as a descriptor of at least @lowest_fd (0: any). -ENXIO: the
 * path is another file, which is possible in the mount namespace of a task. */
int render_node_open(uint32_t minor, int lowest_fd, int *ret_fd);

/* Memory of a GPU, in bytes. A partition reports that of its whole card. */
struct render_memory {
	/* All BOs of all processes. */
	uint64_t vram_used;
	uint64_t gtt_used;
	/* Host memory that the driver maps for the GPU at the same time. More of it makes the
	 * driver evict BOs, also those of other processes. */
	uint64_t gtt_size;
};

int render_node_find_memory(uint32_t minor, struct render_memory *ret_memory);

/* Flags that AMDGPU_CTX_OP_QUERY_STATE2 reports of a context: its GPU was reset, has lost VRAM, or
 * is in a reset (Linux 6.6). libdrm of older systems does not have the name of the last flag. */
#define RENDER_NODE_IN_RESET (1u << 5)
#define RENDER_NODE_SPOILED  (1u << 0 | 1u << 1 | RENDER_NODE_IN_RESET)

/* Whether libdrm can read its list of GPU names (amdgpu.ids). libdrm reads it to the end when it
 * opens a GPU. 0, also without a list; -EMEDIUMTYPE: the list is no regular file of at most 1 MiB.
 */
int render_node_check_names(void);

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
