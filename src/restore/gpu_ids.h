/* SPDX-License-Identifier: GPL-2.0-only */
/* GPUs that come back under another gpu_id. The process goes on using the old id, and the kernel
 * does not translate it everywhere. */
#ifndef AMDGPU_PLUGIN_RESTORE_GPU_IDS_H
#define AMDGPU_PLUGIN_RESTORE_GPU_IDS_H

#include <stdbool.h>

#include "session/restore_session.h"

/* The gpu_ids that mmap() of /dev/kfd takes in offsets. */
enum gpu_ids_mmap {
	/* The driver is not asked: before RESTORE. */
	MMAP_UNASKED,
	/* No GPU has another id, so all are equal. */
	MMAP_SAME_IDS,
	/* The ids of this machine: up to Linux 7.2. */
	MMAP_ACTUAL_IDS,
	/* The ids that the process knows: Linux 7.3. */
	MMAP_USER_IDS,
	/* The GPUs of the task exchange their ids, so both kinds can be mapped. */
	MMAP_UNKNOWN,
};

/* After RESTORE of @state through @fd: asks the driver which ids it takes, by mapping doorbells of
 * a GPU whose id here is no id that the process knows. Logs nothing.
 */
int gpu_ids_probe(int fd, const struct kfd_state *state, enum gpu_ids_mmap *ret_mmap);

/* Warns about each GPU of the mapped @task whose id changes. -EINVAL: what will not work then is
 * likely to happen, and to harm another GPU's memory or queues without an error. @force: only warn.
 * MMAP_UNASKED: logs and returns only what is refused under each driver. */
int gpu_ids_check(const struct restored_task *task, enum gpu_ids_mmap mmap_ids, bool force);

#endif
