/* SPDX-License-Identifier: GPL-2.0-only */
/* The image of the calling task's KFD state, and the mapping of its GPUs. */
#ifndef AMDGPU_PLUGIN_RESTORE_TASK_IMAGE_H
#define AMDGPU_PLUGIN_RESTORE_TASK_IMAGE_H

#include "session/restore_session.h"

/* Not for streams: reads the GPUs of all images into session->tree. CRIU's main process does it
 * before CRIU forks the tasks, which then need not read each other's images. Later calls return the
 * result of the first. Logs on error. */
int task_image_read_tree(struct restore_session *session);
/* Reads the image of the calling task and maps its GPUs. The first hook of the task does it, so the
 * order of its files does not matter. @render is an image of the task, which in a stream names the
 * KFD image. -ENOENT: the task has no KFD state. Logs on other errors. */
int task_image_read(struct restore_session *session, const CriuRenderNode *render);
/* Maps @saved to the GPUs of this machine that the calling task can open, and reads them into
 * @ret_local, which the map borrows. Maps the GPUs of all images together, as the other tasks do.
 * Makes the render nodes of mapped GPUs that a container's /dev lacks. @name begins log lines. Logs
 * on error; *@ret_map is empty then. */
int task_image_map_gpus(struct restore_session *session, const char *name,
			const struct topology *saved, struct topology *ret_local,
			struct gpu_map *ret_map);
/* The entry of @render for the calling task, or NULL. */
const KfdOwner *task_image_find_owner(const struct restored_task *task,
				      const CriuRenderNode *render);
/* Validates task->kfd, reads the topologies and maps the GPUs. Does nothing in later calls. Logs on
 * error; task->kfd is NULL then. */
int task_image_prepare(struct restore_session *session);
/* Frees all of that. Accepts a task without an image. */
void task_image_forget(struct restored_task *task);

#endif
