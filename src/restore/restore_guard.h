/* SPDX-License-Identifier: GPL-2.0-only */
/* The guard of a restore. If CRIU is killed during a restore, its tasks hang, or run with
 * incomplete GPU state. The guard (criu/guard.h) waits for the end of CRIU and then kills the
 * tasks. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_GUARD_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_GUARD_H

struct restore_session;

/* In CRIU's main process, before CRIU forks the tasks: starts session->guard. When the queues of
 * all tasks run, or CRIU has killed the tasks, guard_end() must follow: CRIU may run much longer
 * than the restore takes. */
int restore_guard_start(struct restore_session *session);

/* In a task, before RESTORE: waits until the guard knows the task. Without a guard does nothing.
 * After an error, which it logs, the task must fail. */
int restore_guard_register(const struct restore_session *session);

#endif
