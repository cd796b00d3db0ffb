// SPDX-License-Identifier: GPL-2.0-only
/* Kills tasks so that CRIU's wait does not hang. CRIU traces all threads of all tasks, and
 * waits for the leader of one task at a time. The kernel reports a leader after its threads
 * (delay_group_leader() in kernel/exit.c). The first process of a pid namespace ends after all
 * others there, threads of its own included (zap_pid_ns_processes() in kernel/pid_namespace.c).
 * Only the tracer can reap them, so CRIU would wait forever. */
#include "restore/reap.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"

/* No event tells that one of several tracees has ended, so they are asked in turn. */
#define PAUSE_MS 1
/* A task ends late if it waits for a device. After this time CRIU goes on. */
#define PAUSES_MAX (10 * 1000 / PAUSE_MS)

/* Does nothing if the thread has not ended, or if this thread does not trace it. Waiting for one
 * thread could last forever: in the first process of a pid namespace, the last thread ends after
 * the others were reaped. */
static bool reap_thread(pid_t tid)
{
	int status;

	return waitpid(tid, &status, __WALL | WNOHANG) == tid &&
	       (WIFEXITED(status) || WIFSIGNALED(status));
}

/* Returns whether any thread was reaped. */
static bool reap_threads(pid_t pid)
{
	struct dirent *entry;
	bool reaped = false;
	char path[64];
	DIR *stream;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	stream = opendir(path);
	if (!stream)
		return false;
	while ((entry = readdir(stream))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && tid != pid && reap_thread(tid))
			reaped = true;
	}
	(void)closedir(stream);
	return reaped;
}

/* @first is the first process of the tasks' pid namespace, or 0. It ends after all others have been
 * reaped. Returns whether any thread was reaped. */
static bool reap(const struct pid_list *tasks, pid_t first)
{
	bool reaped = false;

	for (size_t i = 0; i < tasks->count; i++) {
		pid_t pid = tasks->pids[i];

		if (reap_threads(pid))
			reaped = true;
		if (first && pid != first && reap_thread(pid))
			reaped = true;
	}
	return reaped;
}

static bool is_reportable(pid_t pid)
{
	siginfo_t info = { 0 };

	/* ECHILD: this thread does not trace it. */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG | __WALL) < 0)
		return errno == ECHILD;
	return info.si_pid == pid && (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
				      info.si_code == CLD_DUMPED);
}

static bool are_reportable(const struct pid_list *tasks)
{
	for (size_t i = 0; i < tasks->count; i++) {
		if (!is_reportable(tasks->pids[i]))
			return false;
	}
	return true;
}

static pid_t find_first(const struct pid_list *tasks)
{
	for (size_t i = 0; i < tasks->count; i++) {
		pid_t vpid;

		if (proc_vpid(tasks->pids[i], &vpid) == 0 && vpid == 1)
			return tasks->pids[i];
	}
	return 0;
}

int reap_kill(const struct pid_list *tasks)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	pid_t first = find_first(tasks);

	for (size_t i = 0; i < tasks->count; i++)
		(void)kill(tasks->pids[i], SIGKILL);
	for (int pauses = 0; !(first ? is_reportable(first) : are_reportable(tasks)); pauses++) {
		if (pauses == PAUSES_MAX)
			return -ETIMEDOUT;
		if (reap(tasks, first))
			pauses = 0;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* The options replace CRIU's, which are PTRACE_O_TRACESYSGOOD. ESRCH: the task has ended. */
static int set_options(const struct pid_list *tasks, int options)
{
	for (size_t i = 0; i < tasks->count; i++) {
		if (ptrace(PTRACE_SETOPTIONS, tasks->pids[i], NULL,
			   PTRACE_O_TRACESYSGOOD | options) < 0 &&
		    errno != ESRCH)
			return -errno;
	}
	return 0;
}

int reap_bind(const struct pid_list *tasks)
{
	return set_options(tasks, PTRACE_O_EXITKILL);
}

int reap_unbind(const struct pid_list *tasks)
{
	return set_options(tasks, 0);
}
