/* SPDX-License-Identifier: GPL-2.0-only */
/* The file and the semaphore that libhsakmt before ROCm 6.0 shares between all its users:
 * /dev/shm/hsakmt_shared_mem. A process may have the file mapped, so it must exist at restore. */
#ifndef AMDGPU_PLUGIN_KERNEL_HSAKMT_SHM_H
#define AMDGPU_PLUGIN_KERNEL_HSAKMT_SHM_H

#include <stdint.h>
#include <sys/types.h>

struct hsakmt_shm {
	/* Size and first word of the file; both 0 where there is none. */
	uint64_t size;
	uint32_t magic;
	/* Permissions of file and semaphore, which CRIU finds wanting where they
	 * differ; 0: not known. */
	mode_t mode;
	mode_t semaphore_mode;
};

/* Something else of that name counts as none, after a warning. -errno: there is one, but
 * it cannot be read. */
int hsakmt_shm_read(struct hsakmt_shm *ret_shared);

/* Makes file and semaphore where they are missing; a failure prints its line. Nothing to do for a
 * size of 0. */
int hsakmt_shm_restore(const struct hsakmt_shm *shared);

#endif
