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

/* The guard of a test, and the pipe that it reports to. */
static struct guard guard;
static int fds[2];

static int start(void (*watch)(void *argument, int criu))
{
	struct report report = { .fd = fds[1] };
	const struct guard_ops ops = { watch, &report, &fds[1], 1 };

	return guard_start(&ops, &guard);
}

static int begin(void **state)
{
	int ret = unit_begin(state);

	guard = (struct guard){ 0 };
	return ret < 0 ? ret : pipe(fds);
}

static int end(void **state)
{
	guard_end(&guard);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	return unit_end(state);
}

#define TEST(name) TEST_WITH(name, begin, end)

/* A process acts as CRIU: it starts a guard that reports to a descriptor, and does not return. */
static void assert_reported(void (*act_as_criu)(void), char expected)
{
	pid_t criu = fork();

	if (!criu) {
		act_as_criu();
		_exit(1);
	}
	assert_int_equal(await_report(fds[0]), expected);
	(void)kill(criu, SIGKILL);
	assert_int_equal(waitpid(criu, NULL, 0), criu);
}

static void kill_own_group(void)
{
	(void)setpgid(0, 0);
	if (!start(report_end_of_criu))
		(void)kill(0, SIGKILL);
}

TEST(a_guard_survives_the_process_group_of_criu)
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

static void end_main_thread(void)
{
	pthread_t thread;

	if (!start(report_end_of_main_thread) && !pthread_create(&thread, NULL, stay, NULL))
		(void)syscall(SYS_exit, 0);
}

/* A thread may wait for the driver, while the tasks of CRIU run already. */
TEST(a_guard_notices_the_end_of_the_main_thread)
{
	assert_reported(end_main_thread, 'm');
}

TEST(a_guard_that_is_ended_does_nothing)
{
	assert_int_equal(start(report_end_of_criu), 0);
	assert_true(guard.pid > 0);
	guard_end(&guard);
	assert_int_equal(guard.pid, 0);
	guard_end(&guard);
	fd_close(&fds[1]);
	assert_int_equal(await_report(fds[0]), 0);
}

/* A guard must not undo the dump of a CRIU that is alive. */
TEST(a_guard_polls_again_after_an_error)
{
	failing_polls.count = 3;
	failing_polls.fd = fds[1];
	assert_int_equal(start(report_end_of_criu), 0);
	failing_polls.count = 0;
	assert_int_equal(await_report(fds[0]), 'q');
}

TEST(a_guard_closes_all_other_descriptors)
{
	assert_int_equal(start(report_number_of_fds), 0);
	assert_int_equal(await_report(fds[0]), 1);
}

/* CRIU calls waitpid() for any child after a SIGCHLD. */
TEST(a_wait_for_any_child_does_not_find_a_guard)
{
	struct pollfd ended = { .events = POLLIN };

	assert_int_equal(start(report_number_of_fds), 0);
	assert_int_equal(await_report(fds[0]), 1);
	/* The same holds after the guard has ended. */
	ended.fd = guard.fd;
	assert_int_equal(poll(&ended, 1, LIMIT_MS), 1);
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
}

/* CRIU waits with __WALL when it stops tasks. Another process may then get the pid of the guard. */
TEST(guard_end_does_not_kill_a_process_with_a_reused_pid)
{
	int status;
	pid_t other;

	assert_int_equal(start(report_number_of_fds), 0);
	assert_int_equal(await_report(fds[0]), 1);
	assert_int_equal(waitpid(-1, NULL, __WALL), guard.pid);
	other = unit_start_sleeper();
	guard.pid = other;
	guard_end(&guard);
	assert_int_equal(guard.pid, 0);
	assert_int_equal(waitpid(other, &status, WNOHANG), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(waitpid(other, &status, 0), other);
}
