// SPDX-License-Identifier: GPL-2.0-only
/* CRIU is killed while it starts the queues, or later while it lets the tasks go: either all tasks
 * run, or none does. A child of this program is CRIU, and forks the tasks. */
#include "host.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "criu/options.h"
#include "memory/restore_shared.h"
#include "restore/restore_guard.h"
#include "restore/resume.h"
#include "session/restore_session.h"

#define TASKS 3
#include "adopted_tasks.h"

/* Each task is bound to CRIU, and freed again. */
#define CALLS (2 * TASKS)
#define NEVER (-1)

/* In CRIU. */
#define REQUIRE(condition)                                                     \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(2);                                               \
		}                                                              \
	} while (0)

/* CRIU is killed when it is about to set the options of a task for this time, counted from 0. */
static int kill_before;

/* The task whose queues do not start, or NEVER. */
static int failing;

int __wrap_kfd_resume(pid_t pid);
int __wrap_kfd_resume(pid_t pid)
{
	return failing != NEVER && pid == tasks[failing] ? -EIO : 0;
}

long __real_ptrace(int request, pid_t pid, void *address, void *data);
long __wrap_ptrace(int request, pid_t pid, void *address, void *data);
long __wrap_ptrace(int request, pid_t pid, void *address, void *data)
{
	if (request == PTRACE_SETOPTIONS && kill_before-- == 0)
		(void)raise(SIGKILL);
	return __real_ptrace(request, pid, address, data);
}

static int begin(void **state)
{
	kill_before = failing = NEVER;
	(void)alarm(60);
	return adopted_tasks_begin(state);
}

/* As at the end of CRIU's work: the task stands, and its state is complete. */
static void stop_task(struct restore_session *session, pid_t pid)
{
	int status;

	restore_shared_set_phase(session->shared, pid, PHASE_DONE);
	REQUIRE(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
	REQUIRE(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
	REQUIRE(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status));
}

static void start_tasks(struct restore_session *session)
{
	for (size_t i = 0; i < TASKS; i++) {
		pid_t pid = fork();

		while (!pid)
			(void)pause();
		tasks[i] = pid;
	}
	REQUIRE(restore_guard_register(session) == 0);
	for (size_t i = 0; i < TASKS; i++)
		stop_task(session, tasks[i]);
}

/* Lets @detached tasks go, and is killed. */
static _Noreturn void run_criu(int detached)
{
	static const struct options options;
	struct restore_session session = { .options = &options };

	REQUIRE(restore_shared_new(&session.shared) == 0);
	REQUIRE(restore_guard_start(&session) == 0);
	start_tasks(&session);
	for (int i = 0; i < TASKS; i++)
		REQUIRE((resume_task(&session, tasks[i]) == 0) == (failing == NEVER));
	REQUIRE(kill_before < 0);
	for (int i = 0; i < detached; i++)
		REQUIRE(ptrace(PTRACE_DETACH, tasks[i], 0, 0) == 0);
	(void)raise(SIGKILL);
	exit(2);
}

static void kill_criu(int detached)
{
	pid_t criu = fork();

	assert_true(criu >= 0);
	if (!criu)
		run_criu(detached);
	unit_wait_for_killed(criu);
}

/* A task that the kernel or the guard kills does not come to this signal. */
static void assert_runs(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGUSR1), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGUSR1);
}

static void assert_all(void (*assert_one)(pid_t pid))
{
	for (size_t i = 0; i < TASKS; i++) {
		assert_one(tasks[i]);
		tasks[i] = 0;
	}
}

#define TEST(name) TEST_WITH(name, begin, adopted_tasks_end)

TEST(all_tasks_run_if_criu_is_killed_while_it_lets_them_go)
{
	for (int detached = 0; detached <= TASKS; detached++) {
		print_message("%d tasks detached\n", detached);
		kill_criu(detached);
		assert_all(assert_runs);
	}
}

TEST(no_task_runs_if_criu_is_killed_while_it_binds_or_frees_them)
{
	for (kill_before = 0; kill_before < CALLS; kill_before++) {
		print_message("killed before call %d\n", kill_before);
		kill_criu(0);
		assert_all(unit_wait_for_killed);
	}
}

TEST(no_task_runs_if_the_queues_of_one_do_not_start)
{
	for (failing = 0; failing < TASKS; failing++) {
		print_message("task %d\n", failing);
		kill_criu(0);
		assert_all(unit_wait_for_killed);
	}
}
