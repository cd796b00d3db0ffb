/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of the selftest: programs that it runs and waits for, and how all of them end. One
 * of two processes does the work, and the other one is that of the user. Each ends what is left if
 * the other one is killed. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_RUN_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_RUN_H

#include <stdbool.h>
#include <sys/types.h>

/* Runs @work in the process that does the work, and waits for its end or for a signal that asks
 * this program to end (SIGINT, SIGTERM, SIGHUP). When this returns there are no descendants left.
 * *@ret_result: what @work has returned, from 0 to 127. -EINTR: the user ended it. -ECHILD:
 * something killed it. -EBUSY: a process does not end, as it may happen in a driver that hangs. */
int selftest_run(int (*work)(void *argument), void *argument, int *ret_result);

/* For @work. Starts a program in a session of its own, with standard output and error in @log. */
int selftest_run_start(const char *const argv[], const char *log, pid_t *ret_pid);
/* Waits until the process, a descendant, has ended: *@ret_status is that of waitpid(). -ETIME: it
 * has not ended in @seconds. -ECANCELED: the selftest has to end. */
int selftest_run_wait(pid_t pid, double seconds, int *ret_status);
/* Sleeps for a moment. -ECANCELED: the selftest has to end. -ESRCH: the process has ended. */
int selftest_run_sleep(pid_t pid);
/* Kills all descendants and waits for them. -EBUSY: one does not end. */
int selftest_run_kill_all(void);

#endif
