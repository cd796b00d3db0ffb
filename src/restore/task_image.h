/* SPDX-License-Identifier: GPL-2.0-only */
/* The image of the calling task's KFD state. task_image_read() in restore/restore.h finds it. */
#ifndef AMDGPU_PLUGIN_RESTORE_TASK_IMAGE_H
#define AMDGPU_PLUGIN_RESTORE_TASK_IMAGE_H

#include "restore/restore.h"

/* Not for streams: reads the GPUs of all images into session->tree. CRIU's main process does it
 * before CRIU forks the tasks, which then need not read each other's images. Later calls return the
 * result of the first. Logs on error. */
int task_image_read_tree(struct restore_session *session);
/* Validates task->kfd, reads the topologies and maps the GPUs. Does nothing in later calls. Logs on
 * error; task->kfd is NULL then. */
int task_image_prepare(struct restore_session *session);
/* Frees all of that. Accepts a task without an image. */
void task_image_forget(struct restored_task *task);

#endif
