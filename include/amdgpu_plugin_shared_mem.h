/* SPDX-License-Identifier: GPL-2.0-only */
/* The file and the semaphore that libhsakmt before ROCm 6.0 shares between all its users:
 * /dev/shm/hsakmt_shared_mem. A process may have the file mapped, so it must exist at restore. */
#ifndef AMDGPU_PLUGIN_SHARED_MEM_H
#define AMDGPU_PLUGIN_SHARED_MEM_H

#include <stdint.h>

/* Size and first word of the file; both 0 where it does not exist. */
void shared_mem_read(uint64_t *ret_size, uint32_t *ret_magic);

/* Makes file and semaphore where they are missing. Nothing to do for a size of 0. */
int shared_mem_restore(uint64_t size, uint32_t magic);

#endif
