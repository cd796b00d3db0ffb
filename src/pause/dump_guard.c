// SPDX-License-Identifier: GPL-2.0-only
/* Undoes a dump whose CRIU has died: starts the queues of all paused processes and removes the
 * state images. And starts the queues of processes that outlive a dump that was to end them. */
#include "pause/dump_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/guard.h"
#include "criu/host.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"

/* How long the guard waits before it tries a process again that another tracer holds. */
#define RETRY_NS 100000000

/* How often the guard looks whether CRIU still traces the job. The kernel has no event for that. */
#define LOOK_MS 10

/* The tasks that CRIU leaves behind: it has died, or is about to kill them. */
struct orphans {
	/* Files of /dev/kfd. */
	int *files;
	size_t num_files;
	/* All processes that CRIU traced; 0: seized, or ended. Only the driver knows which of them
	 * are KFD processes. The arrays are in memory that all tries share. */
	pid_t *pids;
	size_t num_pids;
	/* By index of files. */
	bool *unpaused;
	bool streamed;
	/* By index of pids: the process that CRIU is about to end, or -1 if it has ended. */
	int *pidfds;
};

/* Seizes the process. False: the kernel forbids it. */
static bool try_seize(pid_t pid)
{
	return !ptrace(PTRACE_SEIZE, pid, NULL, NULL) || errno != EPERM;
}

/* Seizes the process, unless another tracer has it, such as a debugger or the next dump. That
 * tracer may let go between the two calls, so the second try decides. False: another tracer has
 * it. An untraced process that cannot be seized has ended. */
static bool seize_orphan(pid_t pid)
{
	if (try_seize(pid))
		return true;
	return !proc_is_traced(pid) && (try_seize(pid) || !proc_is_traced(pid));
}

/* Becomes the tracer of all orphans, because the driver lets only a tracer unpause. A seized
 * process does not stop, and is free again when this process ends. True: some have another tracer,
 * so another try is needed. */
static bool seize_orphans(struct orphans *orphans)
{
	bool waiting = false;

	for (size_t i = 0; i < orphans->num_pids; i++) {
		pid_t *pid = &orphans->pids[i];

		if (*pid && !seize_orphan(*pid))
			waiting = true;
		else
			*pid = 0;
	}
	return waiting;
}

/* True: another try is needed. */
static bool unpause_orphans(struct orphans *orphans)
{
	bool waiting = seize_orphans(orphans), pending = false;

	for (size_t i = 0; i < orphans->num_files; i++) {
		if (orphans->unpaused[i])
			continue;
		orphans->unpaused[i] = kfd_unpause(orphans->files[i]) != -EBADF;
		pending |= !orphans->unpaused[i];
	}
	return waiting && pending;
}

/* Tries in a child process. The end of the child frees all tracees. They must not stay traced until
 * another tracer lets go of the last one: the guard does not restart a tracee that stops for a
 * signal. */
static bool try_unpause_orphans(struct orphans *orphans)
{
	int status = 1;
	pid_t pid;

	/* If CRIU was started with SIGCHLD ignored, waitpid() could not wait. */
	(void)signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid < 0)
		return unpause_orphans(orphans);
	if (!pid)
		_exit(unpause_orphans(orphans) ? 1 : 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status != 0;
}

static void watch_dump(void *argument, int criu)
{
	struct orphans *orphans = argument;
	bool pending;

	guard_await_criu(criu);
	pending = try_unpause_orphans(orphans);
	if (!orphans->streamed)
		(void)image_dir_remove_state();
	while (pending) {
		(void)nanosleep(&(const struct timespec){ .tv_nsec = RETRY_NS }, NULL);
		pending = try_unpause_orphans(orphans);
	}
}

/* Forgets the processes that have ended, because another process may get the pid. Returns the first
 * live process, or num_pids. */
static size_t forget_ended(struct orphans *orphans)
{
	size_t first = orphans->num_pids;

	for (size_t i = orphans->num_pids; i-- > 0;) {
		if (orphans->pidfds[i] >= 0 && guard_process_has_ended(orphans->pidfds[i], 0))
			fd_close(&orphans->pidfds[i]);
		if (orphans->pidfds[i] >= 0)
			first = i;
		else
			orphans->pids[i] = 0;
	}
	return first;
}

/* CRIU kills all tasks or lets go of all, so checking one is enough. */
static void watch_end(void *argument, int criu)
{
	struct orphans *orphans = argument;
	size_t first;

	(void)criu;
	/* The working directory may be on a file system that the user wants to unmount. */
	(void)!chdir("/");
	while ((first = forget_ended(orphans)) < orphans->num_pids) {
		if (!proc_is_traced(orphans->pids[first]) && !try_unpause_orphans(orphans))
			return;
		(void)guard_process_has_ended(orphans->pidfds[first], LOOK_MS);
	}
}

static size_t shared_size(const struct orphans *orphans)
{
	return orphans->num_pids * sizeof(*orphans->pids) +
	       orphans->num_files * sizeof(*orphans->unpaused);
}

static int share(struct orphans *orphans, const struct pid_list *processes)
{
	void *memory;

	orphans->num_pids = processes->count;
	memory = mmap(NULL, shared_size(orphans), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	orphans->pids = memory;
	for (size_t i = 0; i < orphans->num_pids; i++)
		orphans->pids[i] = processes->pids[i];
	orphans->unpaused = (bool *)(orphans->pids + orphans->num_pids);
	return 0;
}

int dump_guard_start(struct dump_session *session)
{
	_cleanup_free_ int *fds = calloc(session->num_files + 1, sizeof(*fds));
	_cleanup_(pid_list_done) struct pid_list tracees = { 0 };
	struct orphans orphans = { .files = fds,
				   .num_files = session->num_files,
				   .streamed = image_is_streamed() };
	const struct guard_ops ops = { watch_dump, &orphans, fds, session->num_files + 1 };
	struct guard old = session->guard;
	int ret;

	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < session->num_files; i++)
		fds[i] = session->files[i].fd;
	fds[session->num_files] = host_image_dir();
	ret = proc_list_tracees(&tracees);
	if (!ret)
		ret = share(&orphans, &tracees);
	if (ret < 0)
		return ret;
	ret = guard_start(&ops, &session->guard);
	(void)munmap(orphans.pids, shared_size(&orphans));
	if (!ret)
		guard_end(&old);
	return ret;
}

static bool is_left_to_guard(const struct dumped_process *process)
{
	return process->paused && process->id != DUMP_NO_ID;
}

/* Notes the file of @process and a pidfd of it, which the caller closes. */
static int add_orphan(struct orphans *orphans, const struct dumped_process *process,
		      struct pid_list *processes)
{
	int ret = pid_list_add(processes, process->pid);

	if (ret < 0)
		return ret;
	orphans->files[orphans->num_files] = process->fd;
	orphans->pidfds[orphans->num_files] = (int)syscall(SYS_pidfd_open, process->pid, 0);
	return orphans->pidfds[orphans->num_files++] < 0 ? -errno : 0;
}

static int start_orphan(struct orphans *orphans, const struct pid_list *processes,
			const struct guard_ops *ops)
{
	int ret = share(orphans, processes);

	if (ret < 0)
		return ret;
	ret = guard_start_orphan(ops);
	(void)munmap(orphans->pids, shared_size(orphans));
	return ret;
}

int dump_guard_leave(struct dump_session *session)
{
	const size_t count = session->num_processes;
	_cleanup_free_ int *fds = calloc(2 * count + 1, sizeof(*fds));
	_cleanup_(pid_list_done) struct pid_list processes = { 0 };
	struct orphans orphans = { .files = fds, .pidfds = fds + count };
	const struct guard_ops ops = { watch_end, &orphans, fds, 2 * count };
	int ret = fds ? 0 : -ENOMEM;

	for (size_t i = 0; fds && i < 2 * count; i++)
		fds[i] = -1;
	for (size_t i = 0; !ret && i < count; i++) {
		if (is_left_to_guard(&session->processes[i]))
			ret = add_orphan(&orphans, &session->processes[i], &processes);
	}
	if (!ret && !orphans.num_files)
		ret = -ENOENT;
	if (!ret)
		ret = start_orphan(&orphans, &processes, &ops);
	for (size_t i = 0; i < orphans.num_files; i++)
		fd_close(&orphans.pidfds[i]);
	for (size_t i = 0; !ret && i < count; i++)
		session->processes[i].paused &= !is_left_to_guard(&session->processes[i]);
	return ret;
}
