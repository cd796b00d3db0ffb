/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of tasks that CRIU traces. */
#ifndef AMDGPU_PLUGIN_RESTORE_REAP_H
#define AMDGPU_PLUGIN_RESTORE_REAP_H

struct pid_list;

/* Kills @tasks, which this thread traces, and waits until waitpid() reports the end of the first
 * process of a pid namespace, or of each of them if that is not among them. Leaves these reports to
 * the caller's next waitpid(). -ETIMEDOUT: some have not ended after 10 seconds without progress.
 */
int reap_kill(const struct pid_list *tasks);

/* From here on, the kernel kills @tasks if this thread, which traces them, ends before it lets them
 * go. They must stand, and no system call may be carried out in them afterwards. */
int reap_bind(const struct pid_list *tasks);
/* Undoes reap_bind(), task by task: if this thread is killed meanwhile, some tasks run on. */
int reap_unbind(const struct pid_list *tasks);

#endif
