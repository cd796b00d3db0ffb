// SPDX-License-Identifier: GPL-2.0-only
/* A dump whose CRIU is killed, which is a process of its own here: the job's queues start again, by
 * somebody who may do that, and nothing is left that could be taken for an image. */
#include "dump_task.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "kernel/proc.h"

#define LIMIT_MS   120000
#define MAIN_IMAGE "amdgpu-kfd-5.img"

/* A job that runs; what outlives its parent becomes a child of this process. */
static int begin_with_job(void **state)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -1;
	tracee = unit_start_sleeper();
	if (fake_gpu_begin(state) < 0)
		return -1;
	fake_kernel_share();
	return 0;
}

/* kill() here would take it for a task that gives itself up. */
static void __attribute__((noreturn)) die(void)
{
	(void)syscall(SYS_kill, getpid(), SIGKILL);
	_exit(1);
}

/* In CRIU: whether the dump has come so far that only CRIU's own part is missing. */
static bool dump_all(struct fake_process *process)
{
	return ptrace(PTRACE_SEIZE, tracee, 0, 0) == 0 && CR_PLUGIN_DESC.init(STAGE_DUMP) == 0 &&
	       dump_file(open_kfd_of(process), 5) == 0 && process->paused == 1 &&
	       unit_exists(MAIN_IMAGE);
}

/* Besides the job there is no other child by then. */
static void wait_for_guard(void)
{
	int status;

	assert_int_not_equal(waitpid(-1, &status, __WALL), tracee);
	assert_int_equal(status, 0);
}

static void a_job_whose_dump_is_killed_runs_again(void **state)
{
	struct fake_process *process = make_process();
	pid_t criu;

	(void)state;
	unit_print("core-1.img", "of CRIU's");
	criu = fork();
	if (!criu) {
		if (dump_all(process))
			die();
		_exit(1);
	}
	unit_wait_for_killed(criu);
	wait_for_guard();
	assert_int_equal(process->paused, 0);
	assert_false(unit_exists(MAIN_IMAGE));
	assert_true(unit_exists("core-1.img"));
}

/* So that another may have it. */
static bool let_go(void)
{
	int status;

	return ptrace(PTRACE_INTERRUPT, tracee, 0, 0) == 0 &&
	       waitpid(tracee, &status, 0) == tracee && ptrace(PTRACE_DETACH, tracee, 0, 0) == 0;
}

static void wait_until_removed(const char *name)
{
	for (unsigned int i = 0; i < LIMIT_MS && unit_exists(name); i++)
		(void)nanosleep(&(const struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_false(unit_exists(name));
}

/* A dump is killed when another, this process, has come to trace the job; CRIU traces also
 * @other, unless that is 0. Images go at once. */
static void kill_dump_of_a_job_that_another_traces(struct fake_process *process, pid_t other)
{
	int line[2];
	pid_t criu;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	criu = fork();
	if (!criu) {
		if ((!other || ptrace(PTRACE_SEIZE, other, 0, 0) == 0) && dump_all(process) &&
		    let_go() && write(line[1], "", 1) == 1 && read(line[1], &byte, 1) == 1)
			die();
		_exit(1);
	}
	(void)close(line[1]);
	assert_int_equal(read(line[0], &byte, 1), 1);
	assert_int_equal(ptrace(PTRACE_SEIZE, tracee, 0, 0), 0);
	assert_int_equal(write(line[0], "", 1), 1);
	(void)close(line[0]);
	unit_wait_for_killed(criu);
	wait_until_removed(MAIN_IMAGE);
	assert_int_equal(process->paused, 1);
}

static void a_job_that_another_traces_runs_again_when_it_is_let_go(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	kill_dump_of_a_job_that_another_traces(process, 0);
	assert_true(let_go());
	wait_for_guard();
	assert_int_equal(process->paused, 0);
}

/* Who is held would stand still with his next signal. */
static void others_are_let_go_while_one_is_waited_for(void **state)
{
	struct fake_process *process = make_process();
	pid_t other = unit_start_sleeper();
	bool is_traced = true;

	(void)state;
	kill_dump_of_a_job_that_another_traces(process, other);
	for (unsigned int i = 0; i < LIMIT_MS && is_traced; i++) {
		(void)nanosleep(&(const struct timespec){ .tv_nsec = 1000000 }, NULL);
		is_traced = proc_is_traced(other);
	}
	assert_false(is_traced);
	assert_true(let_go());
	wait_for_guard();
	assert_int_equal(process->paused, 0);
	unit_end_sleeper(other);
}

static void a_dump_that_is_complete_needs_no_guard(void **state)
{
	struct fake_process *process = make_process();
	pid_t criu;

	(void)state;
	criu = fork();
	if (!criu) {
		if (dump_all(process) && finish_dump(0) == 0)
			die();
		_exit(1);
	}
	unit_wait_for_killed(criu);
	assert_int_equal(unit_count_children(), 1);
	assert_int_equal(process->paused, 0);
	assert_true(unit_exists(MAIN_IMAGE));
}

int main(void)
{
#define WITH_JOB(function) cmocka_unit_test_setup_teardown(function, begin_with_job, end)
	const struct CMUnitTest tests[] = {
		WITH_JOB(a_job_whose_dump_is_killed_runs_again),
		WITH_JOB(a_job_that_another_traces_runs_again_when_it_is_let_go),
		WITH_JOB(others_are_let_go_while_one_is_waited_for),
		WITH_JOB(a_dump_that_is_complete_needs_no_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
