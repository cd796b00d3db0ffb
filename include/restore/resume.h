/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of CRIU's main process in a restore, after it has forked all tasks: it loads the
 * contents that tasks hand over, and starts all queues. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESUME_H
#define AMDGPU_PLUGIN_RESTORE_RESUME_H

#include <sys/types.h>

#include "session/restore_session.h"

/* When CRIU has forked all tasks: starts the thread that loads the contents of tasks. If that
 * fails, or a limit of processes leaves little room, logs a warning, and each task loads its own
 * contents. */
void resume_listen(struct restore_session *session);
/* Answers RESUME_DEVICES_LATE, which CRIU calls for each task when it has restored all memory, for
 * the root of the tree first. The first call waits for the contents of all tasks, checks the tasks,
 * and starts all queues. If that fails, it kills all tasks, also those without GPU state, because
 * some versions of CRIU ignore the result of this hook. Later calls return the same error.
 * -ENOTSUP: task @pid has no queues that the plugin has started. */
int resume_task(struct restore_session *session, pid_t pid);
/* At the end of a successful restore: if CRIU has not called resume_task(), because another plugin
 * answered for all tasks, logs an error. Then CRIU must end, and the guard kills all tasks. */
int resume_finish(const struct restore_session *session);

#endif
