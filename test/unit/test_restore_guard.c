// SPDX-License-Identifier: GPL-2.0-only
/* A restore whose CRIU is killed, which is a process of its own here, as its tasks are: those that
 * are not complete die with it, whenever that is. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "host.h"
#include "restore/restore_guard.h"

#define LIMIT_MS 120000
#define TASKS    2

/* Of CRIU's forking, so in memory that all share. */
static pid_t *tasks;

/* What outlives its parent becomes a child of this process. */
static int begin(void **state)
{
	tasks = mmap(NULL, TASKS * sizeof(*tasks), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tasks == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -1;
	return unit_begin(state);
}

/* Guards may take a moment longer than what they watch. */
static int end(void **state)
{
	for (size_t i = 0; i < TASKS; i++) {
		if (tasks[i])
			(void)kill(tasks[i], SIGKILL);
	}
	while (waitpid(-1, NULL, __WALL) > 0)
		continue;
	(void)munmap(tasks, TASKS * sizeof(*tasks));
	return unit_end(state);
}

/* A task that announces itself when all others have closed @gate, says so, and stays. */
static void __attribute__((noreturn))
run_task(struct restore_guard *restore_guard, const int gate[2], int line)
{
	char byte;

	(void)close(gate[1]);
	if (read(gate[0], &byte, 1) != 0 || restore_guard_register(restore_guard) < 0 ||
	    write(line, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

/* In CRIU: tasks that have announced themselves, and stay. As with CRIU, none goes on before
 * all have been forked. With CLONE_PARENT they become CRIU's siblings, as container runtimes
 * want it of the first. */
static bool start_tasks_as(unsigned long flags, struct restore_guard *restore_guard)
{
	int line[2], gate[2];
	char byte;

	if (pipe(line) < 0 || pipe(gate) < 0)
		return false;
	for (size_t i = 0; i < TASKS; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0UL);

		if (!pid)
			run_task(restore_guard, gate, line[1]);
		tasks[i] = pid;
	}
	(void)close(gate[1]);
	for (size_t i = 0; i < TASKS; i++) {
		if (read(line[0], &byte, 1) != 1)
			return false;
	}
	return true;
}

static bool start_tasks(struct restore_guard *restore_guard)
{
	return start_tasks_as(0, restore_guard);
}

/* How a process ends that should do so by now. */
static int await_end(pid_t pid)
{
	struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int status;

	assert_true(ended.fd >= 0);
	assert_int_equal(poll(&ended, 1, LIMIT_MS), 1);
	(void)close(ended.fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_tasks_die(void)
{
	for (size_t i = 0; i < TASKS; i++) {
		int status = await_end(tasks[i]);

		tasks[i] = 0;
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
	}
}

/* The root of a tree and its child, of which only the child has a GPU. It comes after the root has
 * left CRIU's memory. */
static bool start_tree(unsigned long flags, struct restore_guard *restore_guard)
{
	int line[2], gate[2];
	pid_t root, child;
	char byte;

	if (pipe(line) < 0 || pipe(gate) < 0)
		return false;
	root = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0UL);
	if (root) {
		tasks[0] = root;
		(void)close(gate[1]);
		return read(line[0], &byte, 1) == 1;
	}
	child = fork();
	if (!child)
		run_task(restore_guard, gate, line[1]);
	tasks[1] = child;
	restore_guard_detach(&restore_guard);
	(void)close(gate[1]);
	for (;;)
		(void)pause();
}

static void assert_die_with_criu(bool (*start)(unsigned long flags,
					       struct restore_guard *restore_guard))
{
	static const unsigned long flags[] = { 0, CLONE_PARENT };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		pid_t criu = fork();

		print_message("case %zu\n", i);
		if (!criu) {
			struct restore_guard *restore_guard;

			if (restore_guard_new(&restore_guard) == 0 &&
			    start(flags[i], restore_guard))
				(void)raise(SIGKILL);
			_exit(1);
		}
		unit_wait_for_killed(criu);
		assert_tasks_die();
	}
}

static void tasks_die_with_a_criu_that_is_killed(void **state)
{
	(void)state;
	assert_die_with_criu(start_tasks_as);
}

static void tasks_without_a_gpu_die_with_them(void **state)
{
	(void)state;
	assert_die_with_criu(start_tree);
}

/* Another plugin may answer for all tasks when queues are to run: CRIU believes
 * that all is done. */
static void tasks_that_nobody_completes_die_when_criu_ends(void **state)
{
	pid_t criu = fork();
	int status;

	(void)state;
	if (!criu) {
		struct restore_guard *restore_guard;

		if (restore_guard_new(&restore_guard) < 0 || !start_tasks(restore_guard))
			_exit(1);
		restore_guard_task_done(restore_guard);
		if (restore_guard_check_done(restore_guard) != -EIO ||
		    !unit_logged("1 of 2 processes", NULL))
			_exit(1);
		restore_guard_detach(&restore_guard);
		_exit(restore_guard || unit_count_children() != TASKS + 1);
	}
	assert_int_equal(waitpid(criu, &status, 0), criu);
	assert_int_equal(status, 0);
	assert_tasks_die();
}

/* The guard goes with the last of them. */
static void tasks_that_are_complete_live_on(void **state)
{
	pid_t criu = fork();

	(void)state;
	if (!criu) {
		struct restore_guard *restore_guard;

		if (restore_guard_new(&restore_guard) < 0 || !start_tasks(restore_guard))
			_exit(1);
		restore_guard_task_done(restore_guard);
		if (unit_count_children() != TASKS + 1)
			_exit(1);
		restore_guard_task_done(restore_guard);
		if (restore_guard_check_done(restore_guard) == 0 && unit_count_children() == TASKS)
			(void)raise(SIGKILL);
		_exit(1);
	}
	unit_wait_for_killed(criu);
	for (size_t i = 0; i < TASKS; i++)
		assert_int_equal(waitpid(tasks[i], NULL, WNOHANG), 0);
}

static void a_task_that_comes_after_criu_s_end_fails(void **state)
{
	pid_t criu = fork();
	int status;

	(void)state;
	if (!criu) {
		/* What the guard looks at. Descriptors are closed before that, and then a task may
		 * still be let come, to be killed a moment later. */
		struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, getpid(), 0),
					.events = POLLIN };
		struct restore_guard *restore_guard;
		pid_t pid;

		if (restore_guard_new(&restore_guard) < 0)
			_exit(1);
		pid = fork();
		if (pid) {
			tasks[0] = pid;
			(void)raise(SIGKILL);
		}
		_exit(poll(&ended, 1, LIMIT_MS) == 1 ? -restore_guard_register(restore_guard) : 1);
	}
	unit_wait_for_killed(criu);
	status = await_end(tasks[0]);
	tasks[0] = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EPIPE);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tasks_die_with_a_criu_that_is_killed),
		TEST(tasks_without_a_gpu_die_with_them),
		TEST(tasks_that_nobody_completes_die_when_criu_ends),
		TEST(tasks_that_are_complete_live_on),
		TEST(a_task_that_comes_after_criu_s_end_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
