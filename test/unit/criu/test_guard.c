// SPDX-License-Identifier: GPL-2.0-only
/* A guard acts when the process that started it dies, and only then. */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "criu/guard.h"
#include "host.h"

#define LIMIT_MS 120000

/* The pipe that a guard keeps open and reports to. */
struct report {
	int fd;
};

static void report_end_of_criu(void *argument, int criu)
{
	const struct report *report = argument;

	guard_await_criu(criu);
	(void)!write(report->fd, "e", 1);
}

static void report_end_of_main_thread(void *argument, int criu)
{
	const struct report *report = argument;

	guard_await_main_thread(criu);
	(void)!write(report->fd, guard_process_has_ended(criu, 0) ? "e" : "m", 1);
}

/* The first @count calls of poll() fail, and the last of them writes to @fd. */
static struct {
	unsigned int count;
	int fd;
} failing_polls;

/* Replaces that of the C library. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int (*real)(struct pollfd * fds, nfds_t count, int timeout_ms) =
		(int (*)(struct pollfd *, nfds_t, int))(uintptr_t)dlsym(RTLD_NEXT, "poll");

	if (!failing_polls.count)
		return real(fds, count, timeout_ms);
	if (!--failing_polls.count)
		(void)!write(failing_polls.fd, "q", 1);
	errno = EINTR;
	return -1;
}

static void report_number_of_fds(void *argument, int criu)
{
	const struct report *report = argument;
	char count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0 && fd != criu;
	(void)!write(report->fd, &count, 1);
}

static char await_report(int fd)
{
	struct pollfd reported = { .fd = fd, .events = POLLIN };
	char byte = 0;

	assert_int_equal(poll(&reported, 1, LIMIT_MS), 1);
	(void)!read(fd, &byte, 1);
	return byte;
}

static int start(void (*watch)(void *argument, int criu), int fd, struct guard *ret_guard)
{
	struct report report = { .fd = fd };
	const struct guard_ops ops = { watch, &report, &fd, 1 };

	return guard_start(&ops, ret_guard);
}

/* A process acts as CRIU: it starts a guard that reports to a descriptor, and does not return. */
static void assert_reported(void (*act_as_criu)(int fd), char expected)
{
	int fds[2];
	pid_t criu;

	assert_int_equal(pipe(fds), 0);
	criu = fork();
	if (!criu) {
		act_as_criu(fds[1]);
		_exit(1);
	}
	assert_int_equal(await_report(fds[0]), expected);
	(void)kill(criu, SIGKILL);
	assert_int_equal(waitpid(criu, NULL, 0), criu);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void kill_own_group(int fd)
{
	struct guard guard;

	(void)setpgid(0, 0);
	if (!start(report_end_of_criu, fd, &guard))
		(void)kill(0, SIGKILL);
}

UNIT_TEST(a_guard_survives_the_process_group_of_criu)
{
	assert_reported(kill_own_group, 'e');
}

static void *stay(void *argument)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)pause();
	return argument;
}

static void end_main_thread(int fd)
{
	struct guard guard;
	pthread_t thread;

	if (!start(report_end_of_main_thread, fd, &guard) &&
	    !pthread_create(&thread, NULL, stay, NULL))
		(void)syscall(SYS_exit, 0);
}

/* A thread may wait for the driver, while the tasks of CRIU run already. */
UNIT_TEST(a_guard_notices_the_end_of_the_main_thread)
{
	assert_reported(end_main_thread, 'm');
}

UNIT_TEST(a_guard_that_is_ended_does_nothing)
{
	struct guard guard = { 0 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(start(report_end_of_criu, fds[1], &guard), 0);
	assert_true(guard.pid > 0);
	guard_end(&guard);
	assert_int_equal(guard.pid, 0);
	guard_end(&guard);
	(void)close(fds[1]);
	assert_int_equal(await_report(fds[0]), 0);
	(void)close(fds[0]);
}

/* A guard must not undo the dump of a CRIU that is alive. */
UNIT_TEST(a_guard_polls_again_after_an_error)
{
	struct guard guard = { 0 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	failing_polls.count = 3;
	failing_polls.fd = fds[1];
	assert_int_equal(start(report_end_of_criu, fds[1], &guard), 0);
	failing_polls.count = 0;
	assert_int_equal(await_report(fds[0]), 'q');
	guard_end(&guard);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

UNIT_TEST(a_guard_closes_all_other_descriptors)
{
	struct guard guard = { 0 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(start(report_number_of_fds, fds[1], &guard), 0);
	assert_int_equal(await_report(fds[0]), 1);
	guard_end(&guard);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* CRIU calls waitpid() for any child after a SIGCHLD. */
UNIT_TEST(a_wait_for_any_child_does_not_find_a_guard)
{
	struct pollfd ended = { .events = POLLIN };
	struct guard guard = { 0 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(start(report_number_of_fds, fds[1], &guard), 0);
	assert_int_equal(await_report(fds[0]), 1);
	/* The same holds after the guard has ended. */
	ended.fd = guard.fd;
	assert_int_equal(poll(&ended, 1, LIMIT_MS), 1);
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	guard_end(&guard);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* CRIU waits with __WALL when it stops tasks. Another process may then get the pid of the guard. */
UNIT_TEST(guard_end_does_not_kill_a_process_with_a_reused_pid)
{
	struct guard guard = { 0 };
	int fds[2], status;
	pid_t other;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(start(report_number_of_fds, fds[1], &guard), 0);
	assert_int_equal(await_report(fds[0]), 1);
	assert_int_equal(waitpid(-1, NULL, __WALL), guard.pid);
	other = unit_start_sleeper();
	guard.pid = other;
	guard_end(&guard);
	assert_int_equal(guard.pid, 0);
	assert_int_equal(waitpid(other, &status, WNOHANG), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(waitpid(other, &status, 0), other);
	(void)close(fds[0]);
	(void)close(fds[1]);
}
