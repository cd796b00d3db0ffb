/* SPDX-License-Identifier: GPL-2.0-only */
/* GPUs that come back under another gpu_id. The process goes on using the old id, and the kernel
 * does not translate it everywhere. */
#ifndef AMDGPU_PLUGIN_RESTORE_GPU_IDS_H
#define AMDGPU_PLUGIN_RESTORE_GPU_IDS_H

#include <stdbool.h>

#include "restore/restore.h"

/* Warns about each GPU of the mapped @task whose id changes. -EINVAL: what will not work then is
 * likely to happen, and to harm another GPU's memory or queues without an error. @force: only warn.
 */
int gpu_ids_check(const struct restored_task *task, bool force);

#endif
