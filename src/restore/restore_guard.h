/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks of a restore, as long as their GPU state is not complete. If CRIU is killed meanwhile
 * they hang for ever, or run on as they are, if it has let go of them already: so they are known to
 * a guard (amdgpu_plugin_guard.h), which then kills them all. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_GUARD_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_GUARD_H

struct restore_guard;

/* In CRIU's main process, before there are tasks: starts the guard. */
int restore_guard_new(struct restore_guard **ret_wards);
/* In the main process: ends the guard. Accepts NULL. */
void restore_guard_free(struct restore_guard *restore_guard);
/* In the main process, instead: the guard stays, and kills all tasks when CRIU ends.
 * *@restore_guard is NULL afterwards; accepts that. */
void restore_guard_detach(struct restore_guard **restore_guard);
/* In the main process, at the end of a restore that CRIU says is done: whether it has said so of
 * each task (restore_guard_task_done()). It has not if another plugin was asked for all. -EIO after
 * a line. Accepts NULL. */
int restore_guard_check_done(const struct restore_guard *restore_guard);

/* In a task, before it has GPU state: waits until the guard knows it. After an error, which prints
 * its line, the task must fail. Accepts NULL, with which nobody is guarded. */
int restore_guard_register(struct restore_guard *restore_guard);
/* In the main process, once for each task that has announced itself, when its queues run.
 * With the last one the guard ends: tasks are complete then, and may run for long before
 * CRIU ends. Accepts NULL. */
void restore_guard_task_done(struct restore_guard *restore_guard);

#endif
