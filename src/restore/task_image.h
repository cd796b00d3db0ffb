/* SPDX-License-Identifier: GPL-2.0-only */
/* The image of the calling task's KFD state. task_image_read() in restore/restore.h finds it. */
#ifndef AMDGPU_PLUGIN_RESTORE_TASK_IMAGE_H
#define AMDGPU_PLUGIN_RESTORE_TASK_IMAGE_H

#include "restore/restore.h"

/* Validates task->kfd, reads the topologies and maps the GPUs. Does nothing in later calls. Logs on
 * error; task->kfd is NULL then. */
int task_image_prepare(struct restore_session *session);
/* Frees all of that. Accepts a task without an image. */
void task_image_forget(struct restored_task *task);

#endif
