/* SPDX-License-Identifier: GPL-2.0-only */
/* Render nodes, /dev/dri/renderD*: the device files of GPUs. */
#ifndef AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H
#define AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Lower minors are primary and control nodes. The kernel has 20 bits for minors (drm_drv.c). */
#define RENDER_NODE_MINOR_FIRST 128
#define RENDER_NODE_MINOR_LAST  0xfffff

/* Whether the device is a render node, of any driver. */
bool render_node_is_device(dev_t device, uint32_t *ret_minor);

/* The device number of the render node with @minor. */
dev_t render_node_device(uint32_t minor);

/* render_node_count.c: the number of GEM objects of the open file, without KFD's BOs. On older
 * kernels 1 stands for any number. Logs nothing. */
int render_node_count_objects(int fd, uint32_t *ret_count);

/* Opens the render node with @minor, as a descriptor of at least @lowest_fd (0: any). -ENXIO: the
 * path is another file, which is possible in the mount namespace of a task. */
int render_node_open(uint32_t minor, int lowest_fd, int *ret_fd);

/* Whether libdrm can read its list of GPU names (amdgpu.ids). libdrm reads it to the end when it
 * opens a GPU. 0, also without a list; -EMEDIUMTYPE: the list is no regular file of at most 1 MiB.
 */
int render_node_check_names(void);

/* The flags that the BO of @dmabuf_fd was made with (AMDGPU_GEM_CREATE_*), by the render node @fd
 * of its GPU. */
int render_node_read_flags(int fd, int dmabuf_fd, uint64_t *ret_flags);

#endif
