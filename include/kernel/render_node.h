/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/dri/renderD*: the device files of GPUs, whatever is done with them. */
#ifndef AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H
#define AMDGPU_PLUGIN_KERNEL_RENDER_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Below are primary and control nodes; the kernel has 20 bits for minors (drm_drv.c). */
#define RENDER_NODE_MINOR_FIRST 128
#define RENDER_NODE_MINOR_LAST  0xfffff

/* Whether the device number is a render node's, of whatever driver. */
bool render_node_is_device(dev_t device, uint32_t *ret_minor);

/* Opens the render node with @minor, with a descriptor of at least @lowest_fd (0: any). -ENXIO: the
 * name is of something else, as may be in a task's mount namespace. Prints nothing. */
int render_node_open(uint32_t minor, int lowest_fd, int *ret_fd);

#endif
