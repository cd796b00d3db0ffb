/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/shm/hsakmt_shared_mem and its semaphore, which all processes with libhsakmt before ROCm 6.0
 * share. A process may map the file, so the file must exist before CRIU restores the mapping. */
#ifndef AMDGPU_PLUGIN_KERNEL_HSAKMT_SHM_H
#define AMDGPU_PLUGIN_KERNEL_HSAKMT_SHM_H

#include <stdint.h>
#include <sys/types.h>

struct hsakmt_shm {
	/* Size and first word of the file, or 0 if there is no file. */
	uint64_t size;
	uint32_t magic;
	/* Permissions of the file and of the semaphore, 0 if unknown. CRIU refuses to restore a
	 * mapping of a file with other permissions. */
	mode_t mode;
	mode_t semaphore_mode;
};

/* Reads the state of the file on this machine. If something else has its name, the log gets a
 * warning, and the result is that of no file. */
int hsakmt_shm_read(struct hsakmt_shm *ret_shared);

/* Creates the file and the semaphore if they do not exist; files that exist keep their contents.
 * Does nothing if the size is 0. Logs on error. */
int hsakmt_shm_restore(const struct hsakmt_shm *shared);

#endif
