/* SPDX-License-Identifier: GPL-2.0-only */
/* Render nodes, /dev/dri/renderD*: the device files of GPUs. */
#ifndef AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H
#define AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H

#include <stdbool.h>
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

/* Whether libdrm can read its list of GPU names (amdgpu.ids). libdrm reads it to the end when it
 * opens a GPU. 0, also without a list; -EMEDIUMTYPE: the list is no regular file of at most 1 MiB.
 */
int render_node_check_names(void);

#endif
