/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory that this process can still allocate. */
#ifndef AMDGPU_PLUGIN_KERNEL_FREE_MEMORY_H
#define AMDGPU_PLUGIN_KERNEL_FREE_MEMORY_H

#include <stdint.h>

/* In bytes: MemAvailable of the machine, and no more than the limits of its cgroups leave. -EIO:
 * the kernel does not say. */
int free_memory_find(uint64_t *ret_bytes);

#endif
