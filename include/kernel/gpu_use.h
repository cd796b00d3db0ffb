/* SPDX-License-Identifier: GPL-2.0-only */
/* Which GPUs the KFD processes of this machine use. */
#ifndef AMDGPU_PLUGIN_KERNEL_GPU_USE_H
#define AMDGPU_PLUGIN_KERNEL_GPU_USE_H

#include <stddef.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"

/* gpu_ids of GPUs, some perhaps twice. Begins all zero. */
struct gpu_use {
	uint32_t *ids;
	size_t count;
};

/* Lists the GPUs on which a KFD process of the machine has memory or a queue. The list is
 * empty without the driver, and where sysfs does not say it. -ENOMEM: the list is incomplete. */
int gpu_use_read(struct gpu_use *ret_use);
/* Sets in_use of the GPUs of a topology. */
void gpu_use_mark(const struct gpu_use *use, struct topology *topology);
void gpu_use_done(struct gpu_use *use);

#endif
