/* SPDX-License-Identifier: GPL-2.0-only */
/* The restore of a process's KFD state, in the restored task, and its resumption
 * by CRIU's main process. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_H

#include "session.h"

/* Makes what the tasks and CRIU's main process share; before any task exists. */
int restore_init(struct session *session);
void restore_done(struct session *session);

/* Reads the image and the topologies of the calling task and maps its GPUs, once, for whoever asks
 * first, so that the order of descriptors does not matter: here @render, an image of the task,
 * which may say where the task's state is. -ENOENT: the task has no KFD state. */
int restore_prepare(struct session *session, const CriuRenderNode *render);
/* What @render says of the calling task, or NULL. */
const KfdOwner *restore_find_owner(const struct restored_task *task, const CriuRenderNode *render);

/* The image @id of a /dev/kfd file, for restore_kfd(). -ENOENT: there is none. */
int restore_read_kfd(struct session *session, int id, CriuKfd **ret_kfd);
/* Rebuilds the file of that image, which it takes over; the descriptor returned is the caller's.
 * After an error the task must not run. */
int restore_kfd(struct session *session, int id, CriuKfd *image);

/* Makes sure that the calling task will not run: restore_resume() will find it incomplete. */
void restore_mark_failed(struct session *session);

/* In CRIU's main process: starts the queues of task @pid. -ENOTSUP: it has none of our making.
 * After an error the task has been killed, since some hosts ignore what this hook returns. */
int restore_resume(struct session *session, int pid);

#endif
