/* SPDX-License-Identifier: GPL-2.0-only */
/* The guard of a restore. If CRIU is killed during a restore, its tasks hang, or run with
 * incomplete GPU state. The guard (criu/guard.h) waits for the end of CRIU and then kills the
 * tasks. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_GUARD_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_GUARD_H

struct restore_guard;

/* In CRIU's main process, before CRIU forks the tasks: starts the guard. */
int restore_guard_new(struct restore_guard **ret_guard);
/* In the main process, when the queues of all tasks run, or CRIU has killed the tasks: ends the
 * guard. CRIU may run much longer than the restore takes. Accepts NULL. */
void restore_guard_free(struct restore_guard *restore_guard);
/* In the main process, at the end of a successful restore in which the queues of no task were
 * started. -EIO after a log line: some task has registered. Accepts NULL. */
int restore_guard_check_unused(const struct restore_guard *restore_guard);

/* In a task, before RESTORE: waits until the guard knows the task. After an error, which it logs,
 * the task must fail. Accepts NULL: there is no guard. */
int restore_guard_register(struct restore_guard *restore_guard);

#endif
