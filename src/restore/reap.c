// SPDX-License-Identifier: GPL-2.0-only
/* Kills a task such that CRIU can wait for its end. CRIU traces all threads of all tasks, and waits
 * for the leader of one task at a time. The kernel reports a leader after its threads
 * (delay_group_leader() in kernel/exit.c). The first process of a pid namespace ends after all
 * others there, threads of its own included (zap_pid_ns_processes() in kernel/pid_namespace.c).
 * Only the tracer can reap them, so CRIU would wait forever. */
#include "restore/reap.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Reaps the other tasks, which the kernel has killed with the first process of their namespace. */
static bool reap_others(pid_t pid)
{
	struct pid_list tracees = { 0 };
	bool reaped = false;

	if (proc_list_tracees(&tracees) < 0)
		return false;
	for (size_t i = 0; i < tracees.count; i++) {
		if (tracees.pids[i] == pid)
			continue;
		if (reap_threads(tracees.pids[i]))
			reaped = true;
		if (reap_thread(tracees.pids[i]))
			reaped = true;
	}
	pid_list_done(&tracees);
	return reaped;
}

static bool is_reportable(pid_t pid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG | __WALL) < 0)
		return true; /* This thread does not trace it. */
	return info.si_pid == pid && (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
				      info.si_code == CLD_DUMPED);
}

void reap_kill(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	pid_t vpid = 0;
	bool is_first = proc_vpid(pid, &vpid) == 0 && vpid == 1;

	(void)kill(pid, SIGKILL);
	for (int pauses = 0; pauses < PAUSES_MAX && !is_reportable(pid); pauses++) {
		bool reaped = reap_threads(pid);

		if (is_first && reap_others(pid))
			reaped = true;
		if (reaped)
			pauses = 0;
		(void)nanosleep(&pause, NULL);
	}
}
