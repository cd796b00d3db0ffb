// SPDX-License-Identifier: GPL-2.0-only
/* Starts and ends the guard, a child of CRIU that outlives CRIU. The work of a guard is in
 * src/pause/dump_guard.c and src/restore/restore_guard.c. */
#include "criu/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"

/* Between two calls of poll() that fail. */
#define RETRY_NS 10000000
/* The kernel sends it to the guard when the thread ends that started the guard. No other program
 * sends it. */
#define THREAD_ENDED SIGRTMAX

static int close_other_fds(const struct guard_ops *ops, int criu, int ready_fd)
{
	size_t count = ops->num_fds + 2;
	_cleanup_free_ int *kept = calloc(count, sizeof(*kept));
	unsigned int first = 0;

	if (!kept)
		return -ENOMEM;
	kept[0] = criu;
	kept[1] = ready_fd;
	for (size_t i = 0; i < ops->num_fds; i++)
		kept[i + 2] = ops->fds[i];
	/* -1 comes last. */
	qsort(kept, count, sizeof(*kept), compare_u32);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < 0)
			continue;
		if ((unsigned int)kept[i] > first)
			(void)close_range(first, (unsigned int)kept[i] - 1, 0);
		first = (unsigned int)kept[i] + 1;
	}
	(void)close_range(first, ~0u, 0);
	return 0;
}

/* The OOM killer would choose the guard, because its RSS looks like that of CRIU. */
static void exempt_from_oom_killer(void)
{
	static const char score[] = "-1000";
	_cleanup_close_ int fd = fd_open("/proc/self/oom_score_adj", O_WRONLY);

	if (fd >= 0)
		(void)!write(fd, score, sizeof(score) - 1);
}

/* A terminal or timeout(1) kills the process group of CRIU, so the guard has its own session. */
static void __attribute__((noreturn)) run_guard(const struct guard_ops *ops, int criu, int ready_fd)
{
	(void)setsid();
	(void)prctl(PR_SET_NAME, GUARD_NAME);
	(void)prctl(PR_SET_PDEATHSIG, THREAD_ENDED);
	exempt_from_oom_killer();
	if (close_other_fds(ops, criu, ready_fd) || write(ready_fd, "", 1) != 1)
		_exit(1);
	fd_close(&ready_fd);
	ops->watch(ops->argument, criu);
	_exit(0);
}

/* Like fork(), but the child ends without SIGCHLD: CRIU waits for every child that ends with it. */
static int fork_without_sigchld(struct guard *ret_guard)
{
	int fd = -1;
	long pid = syscall(SYS_clone, (unsigned long)CLONE_PIDFD, NULL, &fd, NULL, 0UL);

	if (pid < 0)
		return -errno;
	*ret_guard = (struct guard){ (pid_t)pid, fd };
	return 0;
}

/* Whether an orphan among CRIU's descendants becomes CRIU's child. */
static bool adopts_orphans(void)
{
	int is_subreaper = 1;

	return getpid() == 1 || prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) < 0 || is_subreaper;
}

/* In a child of CRIU: returns in a child of that child, whose parent ends here. */
static void leave_criu(void)
{
	if (syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL) != 0)
		_exit(0);
}

/* Waits until the guard has left CRIU's session and has closed the descriptors that it does not
 * need. False: the guard has ended. */
static bool await_ready(int ready_fd)
{
	ssize_t got;
	char byte;

	do {
		got = read(ready_fd, &byte, 1);
	} while (got < 0 && errno == EINTR);
	return got == 1;
}

/* *@ret_guard: the child of CRIU, which is the guard itself unless @leaves. */
static int start(const struct guard_ops *ops, bool leaves, struct guard *ret_guard)
{
	_cleanup_close_ int self = (int)syscall(SYS_pidfd_open, (pid_t)syscall(SYS_getpid), 0);
	_cleanup_close_ int ready_fd = -1, write_fd = -1;
	struct guard guard = { 0 };
	sigset_t all, old;
	int pipe_fds[2], ret;

	if (self < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	ready_fd = pipe_fds[0];
	write_fd = pipe_fds[1];
	/* The guard inherits CRIU's signal handlers and must not run them. Only guard_end() ends
	 * it, by SIGKILL. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	ret = fork_without_sigchld(&guard);
	if (!ret && !guard.pid) {
		if (leaves)
			leave_criu();
		run_guard(ops, self, write_fd);
	}
	fd_close(&write_fd);
	if (!ret && !await_ready(ready_fd)) {
		guard_end(&guard);
		ret = -ECHILD;
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (ret < 0)
		return ret;
	*ret_guard = guard;
	return 0;
}

int guard_start(const struct guard_ops *ops, struct guard *ret_guard)
{
	int ret = start(ops, false, ret_guard);

	/* A low number works, too. */
	if (!ret)
		(void)fd_move_up(&ret_guard->fd, HOST_LOWEST_FD);
	return ret;
}

int guard_start_orphan(const struct guard_ops *ops)
{
	struct guard between;
	int ret;

	if (adopts_orphans())
		return -ECHILD;
	ret = start(ops, true, &between);
	if (!ret)
		guard_end(&between);
	return ret;
}

void guard_end(struct guard *guard)
{
	siginfo_t ended;
	int ret;

	if (!guard->pid)
		return;
	/* If the signal failed, waitid() below would block forever. */
	if (syscall(SYS_pidfd_send_signal, guard->fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		(void)kill(guard->pid, SIGKILL);
	do {
		ret = waitid(P_PIDFD, (id_t)guard->fd, &ended, WEXITED | __WALL);
	} while (ret < 0 && errno == EINTR);
	fd_close(&guard->fd);
	*guard = (struct guard){ 0 };
}

bool guard_process_has_ended(int pidfd, int timeout_ms)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	return poll(&ended, 1, timeout_ms) > 0;
}

void guard_await_criu(int pidfd)
{
	/* poll() may fail while CRIU is alive, and the guard must not act then. */
	while (!guard_process_has_ended(pidfd, -1))
		(void)nanosleep(&(const struct timespec){ .tv_nsec = RETRY_NS }, NULL);
}

void guard_await_main_thread(int pidfd)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, THREAD_ENDED);
	/* All signals are blocked, so one that came before this call is not lost. CRIU may have
	 * died even before the guard asked for the signal. */
	do {
		if (guard_process_has_ended(pidfd, 0))
			return;
	} while (sigtimedwait(&signals, NULL, &(const struct timespec){ .tv_sec = 1 }) < 0);
}
