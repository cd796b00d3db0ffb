// SPDX-License-Identifier: GPL-2.0-only
/* Guards: what they do when the process that started them dies, and that they do nothing
 * when it does not. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu/guard.h"
#include "host.h"

#define LIMIT_MS 120000

/* What a guard says goes into a pipe that it keeps. */
struct words {
	int to;
};

static void say_when_ended(void *argument, int criu)
{
	const struct words *words = argument;

	guard_await_criu(criu);
	(void)!write(words->to, "e", 1);
}

/* So many questions fail, and the last of them is told to a pipe. */
static struct {
	unsigned int count;
	int to;
} failing_polls;

/* Takes the place of the C library's. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int (*real)(struct pollfd * fds, nfds_t count, int timeout_ms) =
		(int (*)(struct pollfd *, nfds_t, int))(uintptr_t)dlsym(RTLD_NEXT, "poll");

	if (!failing_polls.count)
		return real(fds, count, timeout_ms);
	if (!--failing_polls.count)
		(void)!write(failing_polls.to, "q", 1);
	errno = EINTR;
	return -1;
}

static void say_descriptors(void *argument, int criu)
{
	const struct words *words = argument;
	char count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0 && fd != criu;
	(void)!write(words->to, &count, 1);
}

static char hear(int from)
{
	struct pollfd said = { .fd = from, .events = POLLIN };
	char word = 0;

	assert_int_equal(poll(&said, 1, LIMIT_MS), 1);
	(void)!read(from, &word, 1);
	return word;
}

static int start(void (*watch)(void *argument, int criu), int to, struct guard *ret_guard)
{
	struct words words = { .to = to };
	const struct guard_duty duty = { watch, &words, &to, 1 };

	return guard_start(&duty, ret_guard);
}

static void a_guard_acts_when_its_whole_process_group_is_killed(void **state)
{
	int line[2];
	pid_t criu;

	(void)state;
	assert_int_equal(pipe(line), 0);
	criu = fork();
	if (!criu) {
		struct guard guard;

		(void)setpgid(0, 0);
		if (start(say_when_ended, line[1], &guard))
			_exit(1);
		(void)kill(0, SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(criu, NULL, 0), criu);
	assert_int_equal(hear(line[0]), 'e');
	(void)close(line[0]);
	(void)close(line[1]);
}

static void a_guard_that_is_ended_does_nothing(void **state)
{
	struct guard guard = { 0 };
	int line[2];

	(void)state;
	assert_int_equal(pipe(line), 0);
	assert_int_equal(start(say_when_ended, line[1], &guard), 0);
	assert_true(guard.pid > 0);
	guard_end(&guard);
	assert_int_equal(guard.pid, 0);
	guard_end(&guard);
	(void)close(line[1]);
	assert_int_equal(hear(line[0]), 0);
	(void)close(line[0]);
}

/* Who is not told that CRIU has ended must take it for alive: the dump of one that
 * lives is not undone. */
static void a_guard_asks_again_when_it_gets_no_answer(void **state)
{
	struct guard guard = { 0 };
	int line[2];

	(void)state;
	assert_int_equal(pipe(line), 0);
	failing_polls.count = 3;
	failing_polls.to = line[1];
	assert_int_equal(start(say_when_ended, line[1], &guard), 0);
	failing_polls.count = 0;
	assert_int_equal(hear(line[0]), 'q');
	guard_end(&guard);
	(void)close(line[0]);
	(void)close(line[1]);
}

static void a_guard_keeps_no_descriptor_but_those_that_it_is_given(void **state)
{
	struct guard guard = { 0 };
	int line[2];

	(void)state;
	assert_int_equal(pipe(line), 0);
	assert_int_equal(start(say_descriptors, line[1], &guard), 0);
	assert_int_equal(hear(line[0]), 1);
	guard_end(&guard);
	(void)close(line[0]);
	(void)close(line[1]);
}

/* CRIU does that when it is told that some child has ended. */
static void nobody_finds_a_guard_who_waits_for_any_child(void **state)
{
	struct pollfd ended = { .events = POLLIN };
	struct guard guard = { 0 };
	int line[2];

	(void)state;
	assert_int_equal(pipe(line), 0);
	assert_int_equal(start(say_descriptors, line[1], &guard), 0);
	assert_int_equal(hear(line[0]), 1);
	/* Not even when it has ended. */
	ended.fd = guard.fd;
	assert_int_equal(poll(&ended, 1, LIMIT_MS), 1);
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	guard_end(&guard);
	(void)close(line[0]);
	(void)close(line[1]);
}

/* CRIU waits for all of its children in that way when it stops tasks. By then the number of a guard
 * that has ended may be another process's. */
static void a_guard_that_somebody_else_has_waited_for_is_not_taken_for_another(void **state)
{
	struct guard guard = { 0 };
	int line[2], status;
	pid_t other;

	(void)state;
	assert_int_equal(pipe(line), 0);
	assert_int_equal(start(say_descriptors, line[1], &guard), 0);
	assert_int_equal(hear(line[0]), 1);
	assert_int_equal(waitpid(-1, NULL, __WALL), guard.pid);
	other = unit_start_sleeper();
	guard.pid = other;
	guard_end(&guard);
	assert_int_equal(guard.pid, 0);
	assert_int_equal(waitpid(other, &status, WNOHANG), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(waitpid(other, &status, 0), other);
	(void)close(line[0]);
	(void)close(line[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_guard_acts_when_its_whole_process_group_is_killed),
		UNIT_TEST(a_guard_that_is_ended_does_nothing),
		UNIT_TEST(a_guard_asks_again_when_it_gets_no_answer),
		UNIT_TEST(a_guard_keeps_no_descriptor_but_those_that_it_is_given),
		UNIT_TEST(nobody_finds_a_guard_who_waits_for_any_child),
		UNIT_TEST(a_guard_that_somebody_else_has_waited_for_is_not_taken_for_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
