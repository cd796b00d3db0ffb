// SPDX-License-Identifier: GPL-2.0-only
/* Starts and ends processes that outlive CRIU. What they are for is the dump
 * and restore units' business. */
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

/* Between two questions that the kernel did not answer. */
#define ASK_AGAIN_NS 10000000

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_others(const struct guard_duty *duty, int criu, int line)
{
	size_t count = duty->num_fds + 2;
	_cleanup_free_ int *kept = calloc(count, sizeof(*kept));
	unsigned int first = 0;

	if (!kept)
		return -ENOMEM;
	kept[0] = criu;
	kept[1] = line;
	for (size_t i = 0; i < duty->num_fds; i++)
		kept[i + 2] = duty->fds[i];
	qsort(kept, count, sizeof(*kept), compare_fds);
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

/* When memory runs out it must not be the guard that goes: it looks as large as CRIU. */
static void refuse_to_be_killed(void)
{
	static const char never[] = "-1000";
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, never, sizeof(never) - 1);
}

/* In a session of its own, since a terminal or a timeout(1) kills all of a group. */
static void __attribute__((noreturn)) stand_guard(const struct guard_duty *duty, int criu, int line)
{
	(void)setsid();
	(void)prctl(PR_SET_NAME, GUARD_NAME);
	refuse_to_be_killed();
	if (close_others(duty, criu, line) || write(line, "", 1) != 1)
		_exit(1);
	fd_close(&line);
	duty->watch(duty->argument, criu);
	_exit(0);
}

/* As fork() does it, but for the signal at the child's end: CRIU waits for any child
 * whose signal it gets. */
static int fork_silently(struct guard *ret_guard)
{
	int fd = -1;
	long pid = syscall(SYS_clone, (unsigned long)CLONE_PIDFD, NULL, &fd, NULL, 0UL);

	if (pid < 0)
		return -errno;
	*ret_guard = (struct guard){ (pid_t)pid, fd };
	return 0;
}

/* Until it stands by itself, and has closed whatever it does not need; false:
 * it has ended instead. */
static bool becomes_ready(int line)
{
	ssize_t got;
	char byte;

	do {
		got = read(line, &byte, 1);
	} while (got < 0 && errno == EINTR);
	return got == 1;
}

int guard_start(const struct guard_duty *duty, struct guard *ret_guard)
{
	_cleanup_close_ int self = (int)syscall(SYS_pidfd_open, (pid_t)syscall(SYS_getpid), 0);
	_cleanup_close_ int line = -1, its_end = -1;
	struct guard guard = { 0 };
	sigset_t all, old;
	int ends[2], ret;

	if (self < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	line = ends[0];
	its_end = ends[1];
	/* The guard must not run handlers that are not its own, and nobody asks it
	 * to end but guard_end(). */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	ret = fork_silently(&guard);
	if (!ret && !guard.pid)
		stand_guard(duty, self, its_end);
	fd_close(&its_end);
	if (!ret && !becomes_ready(line)) {
		guard_end(&guard);
		ret = -ECHILD;
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (ret < 0)
		return ret;
	/* Where that cannot be, no harm is done. */
	(void)fd_move_up(&guard.fd, HOST_LOWEST_FD);
	*ret_guard = guard;
	return 0;
}

void guard_end(struct guard *guard)
{
	siginfo_t ended;
	int ret;

	if (!guard->pid)
		return;
	/* Who is not ended would be waited for without end. */
	if (syscall(SYS_pidfd_send_signal, guard->fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		(void)kill(guard->pid, SIGKILL);
	do {
		ret = waitid(P_PIDFD, (id_t)guard->fd, &ended, WEXITED | __WALL);
	} while (ret < 0 && errno == EINTR);
	fd_close(&guard->fd);
	*guard = (struct guard){ 0 };
}

bool guard_criu_has_ended(int pidfd, int timeout_ms)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	return poll(&ended, 1, timeout_ms) > 0;
}

void guard_await_criu(int pidfd)
{
	/* An answer that does not come is none: what a guard does must not be done to
	 * a CRIU that lives. */
	while (!guard_criu_has_ended(pidfd, -1))
		(void)nanosleep(&(const struct timespec){ .tv_nsec = ASK_AGAIN_NS }, NULL);
}
