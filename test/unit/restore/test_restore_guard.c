// SPDX-License-Identifier: GPL-2.0-only
/* Restores whose CRIU is killed: tasks with incomplete GPU state die, too. CRIU and its tasks are
 * children of this program. */
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "criu/host.h"
#include "host.h"
#include "memory/restore_shared.h"
#include "restore/restore_guard.h"
#include "restore/resume.h"
#include "session/restore_session.h"

#define LIMIT_MS 120000
#define TASKS    2
#include "adopted_tasks.h"

static int start_guard(struct restore_session *session)
{
	int ret = restore_shared_new(&session->shared);

	return ret < 0 ? ret : restore_guard_start(session);
}

/* Waits until all others have closed @start_pipe, registers, reports that over @line, and sleeps.
 */
static void __attribute__((noreturn))
run_task(struct restore_session *session, const int start_pipe[2], int line)
{
	char byte;

	(void)close(start_pipe[1]);
	if (read(start_pipe[0], &byte, 1) != 0 || restore_guard_register(session) < 0 ||
	    write(line, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

/* In CRIU: starts tasks and waits until they have registered. As with CRIU, a task goes on when all
 * are forked. With CLONE_PARENT they are siblings of CRIU, as container runtimes ask for the first.
 */
static bool start_tasks_as(unsigned long flags, struct restore_session *session)
{
	int line[2], start_pipe[2];
	char byte;

	if (pipe(line) < 0 || pipe(start_pipe) < 0)
		return false;
	for (size_t i = 0; i < TASKS; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0UL);

		if (!pid)
			run_task(session, start_pipe, line[1]);
		tasks[i] = pid;
	}
	(void)close(start_pipe[1]);
	for (size_t i = 0; i < TASKS; i++) {
		if (read(line[0], &byte, 1) != 1)
			return false;
	}
	return true;
}

static bool start_tasks(struct restore_session *session)
{
	return start_tasks_as(0, session);
}

/* Waits for the end of a child. Returns its status. */
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

/* Starts a root and its child. Only the child has a GPU, and registers after the root has unmapped
 * the shared page. */
static bool start_tree(unsigned long flags, struct restore_session *session)
{
	int line[2], start_pipe[2];
	pid_t root, child;
	char byte;

	if (pipe(line) < 0 || pipe(start_pipe) < 0)
		return false;
	root = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0UL);
	if (root) {
		tasks[0] = root;
		(void)close(start_pipe[1]);
		return read(line[0], &byte, 1) == 1;
	}
	child = fork();
	if (!child)
		run_task(session, start_pipe, line[1]);
	tasks[1] = child;
	(void)munmap(session->shared, sizeof(*session->shared));
	(void)close(start_pipe[1]);
	for (;;)
		(void)pause();
}

/* No task has come to its GPU state yet, and some may have none. */
static bool start_before_registration(unsigned long flags, struct restore_session *session)
{
	(void)session;
	for (size_t i = 0; i < TASKS; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0UL);

		while (!pid)
			(void)pause();
		tasks[i] = pid;
	}
	return true;
}

static void assert_die_with_criu(bool (*start)(unsigned long flags,
					       struct restore_session *session))
{
	static const unsigned long flags[] = { 0, CLONE_PARENT };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		pid_t criu = fork();

		print_message("case %zu\n", i);
		if (!criu) {
			struct restore_session session = { 0 };

			if (start_guard(&session) == 0 && start(flags[i], &session))
				(void)raise(SIGKILL);
			_exit(1);
		}
		unit_wait_for_killed(criu);
		assert_tasks_die();
	}
}

#define TEST(name) TEST_WITH(name, adopted_tasks_begin, adopted_tasks_end)

TEST(tasks_die_with_a_criu_that_is_killed)
{
	assert_die_with_criu(start_tasks_as);
}

TEST(tasks_without_a_gpu_die_with_them)
{
	assert_die_with_criu(start_tree);
}

TEST(tasks_die_that_have_not_registered)
{
	assert_die_with_criu(start_before_registration);
}

/* This program has the descriptor store, too, like a helper process of CRIU that outlives it. */
TEST(what_is_stored_is_dropped_with_a_criu_that_is_killed)
{
	struct pollfd other_end = { 0 };
	int ends[2];
	pid_t criu;

	assert_int_equal(criu_stub_open_store(), 0);
	assert_int_equal(pipe(ends), 0);
	criu = fork();
	if (!criu) {
		struct restore_session session = { 0 };

		if (start_guard(&session) == 0 && host_store_fd(ends[1]) >= 0 &&
		    start_tasks(&session))
			(void)raise(SIGKILL);
		_exit(1);
	}
	(void)close(ends[1]);
	unit_wait_for_killed(criu);
	assert_tasks_die();
	other_end.fd = ends[0];
	assert_int_equal(poll(&other_end, 1, LIMIT_MS), 1);
	(void)close(ends[0]);
}

/* Another plugin may answer RESUME_DEVICES_LATE for all tasks. */
TEST(tasks_that_are_not_resumed_die_when_criu_ends)
{
	pid_t criu = fork();

	if (!criu) {
		struct restore_session session = { 0 };

		if (start_guard(&session) < 0 || !start_tasks(&session))
			_exit(1);
		if (resume_finish(&session) != -EIO ||
		    !unit_logged("not asked for the queues", NULL))
			_exit(1);
		_exit(unit_count_children() != TASKS + 1);
	}
	assert_int_equal(unit_wait(criu), 0);
	assert_tasks_die();
}

TEST(complete_tasks_survive_criu)
{
	pid_t criu = fork();

	if (!criu) {
		struct restore_session session = { 0 };

		if (start_guard(&session) < 0 || !start_tasks(&session))
			_exit(1);
		if (unit_count_children() != TASKS + 1)
			_exit(1);
		guard_end(&session.guard);
		if (unit_count_children() == TASKS)
			(void)raise(SIGKILL);
		_exit(1);
	}
	unit_wait_for_killed(criu);
	for (size_t i = 0; i < TASKS; i++)
		assert_int_equal(waitpid(tasks[i], NULL, WNOHANG), 0);
}

/* As CRIU of a user, with one capability: it may read the mappings of its own memory, but not those
 * of a process that the kernel shields. */
static bool become_user(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	data[CAP_CHECKPOINT_RESTORE / 32].permitted = data[CAP_CHECKPOINT_RESTORE / 32].effective =
		1u << CAP_CHECKPOINT_RESTORE % 32;
	return prctl(PR_SET_KEEPCAPS, 1) == 0 && syscall(SYS_setresuid, 65534, 65534, 65534) == 0 &&
	       syscall(SYS_capset, &header, data) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0;
}

TEST(a_task_that_the_guard_cannot_see_fails)
{
	pid_t criu = fork();

	if (!criu) {
		struct restore_session session = { 0 };
		int result;
		pid_t pid;

		if (!become_user() || start_guard(&session) < 0)
			_exit(1);
		pid = fork();
		if (!pid)
			_exit(-restore_guard_register(&session));
		result = unit_wait(pid);
		guard_end(&session.guard);
		_exit(result);
	}
	assert_int_equal(unit_wait(criu), ECHILD);
}

TEST(a_task_that_registers_after_criu_s_end_fails)
{
	pid_t criu = fork();
	int status;

	if (!criu) {
		/* The guard polls the same pidfd. Waiting for the end of a pipe would be too early:
		 * the guard could still accept the task, and kill it a moment later. */
		struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, getpid(), 0),
					.events = POLLIN };
		struct restore_session session = { 0 };
		pid_t pid;

		if (start_guard(&session) < 0)
			_exit(1);
		pid = fork();
		if (pid) {
			tasks[0] = pid;
			(void)raise(SIGKILL);
		}
		_exit(poll(&ended, 1, LIMIT_MS) == 1 ? -restore_guard_register(&session) : 1);
	}
	unit_wait_for_killed(criu);
	status = await_end(tasks[0]);
	tasks[0] = 0;
	/* The guard kills the tasks that it has found, which may be later. */
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), EPIPE);
		return;
	}
	assert_int_equal(WTERMSIG(status), SIGKILL);
}
