// SPDX-License-Identifier: GPL-2.0-only
/* A dump whose CRIU, here a process of its own, is killed: a process that may do it starts the
 * job's queues again, and removes all state images. */
#include "dump_task.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "kernel/proc.h"

#define LIMIT_MS   120000
#define MAIN_IMAGE "amdgpu-kfd-5.img"

static struct fake_process *process;

/* Starts a job. A process that outlives its parent becomes a child of this process. */
static int begin_with_job(void **state)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -1;
	tracee = unit_start_sleeper();
	if (fake_gpu_begin(state) < 0)
		return -1;
	fake_kernel_share();
	process = make_process();
	return 0;
}

/* The fake kernel takes kill() for a task that kills itself. */
static void __attribute__((noreturn)) die(void)
{
	(void)syscall(SYS_kill, getpid(), SIGKILL);
	_exit(1);
}

/* In CRIU: dumps all of the plugin's part. The return value is whether that succeeded. */
static bool dump_all(void)
{
	return ptrace(PTRACE_SEIZE, tracee, 0, 0) == 0 && CR_PLUGIN_DESC.init(STAGE_DUMP) == 0 &&
	       dump_file(open_kfd_of(process), 5) == 0 && process->paused == 1 &&
	       unit_exists(MAIN_IMAGE);
}

/* A guard that does not end must not hold up all tests. */
static void give_up(int signal)
{
	static const char line[] = "the guard does not end\n";

	(void)signal;
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	_exit(1);
}

/* By then the guard is the only other child. */
static void wait_for_guard(void)
{
	int status;

	(void)signal(SIGALRM, give_up);
	(void)alarm(LIMIT_MS / 1000);
	assert_int_not_equal(waitpid(-1, &status, __WALL), tracee);
	(void)alarm(0);
	assert_int_equal(status, 0);
}

static void assert_runs_again(void)
{
	assert_int_equal(process->paused, 0);
	assert_int_equal(process->calls[KFD_UNPAUSE], 1);
}

#define WITH_JOB(name) TEST_WITH(name, begin_with_job, end)

WITH_JOB(a_job_whose_dump_is_killed_runs_again)
{
	pid_t criu;

	unit_print("core-1.img", "of CRIU's");
	criu = fork();
	if (!criu) {
		if (dump_all())
			die();
		_exit(1);
	}
	unit_wait_for_killed(criu);
	wait_for_guard();
	assert_int_equal(process->paused, 0);
	assert_false(unit_exists(MAIN_IMAGE));
	assert_true(unit_exists("core-1.img"));
}

/* Another process may then trace the job. */
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

/* Kills a dump after this process has begun to trace its job. CRIU also traces @other, unless that
 * is 0. The guard removes the images at once. */
static void kill_dump_of_a_job_that_another_traces(pid_t other)
{
	int line[2];
	pid_t criu;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	criu = fork();
	if (!criu) {
		if ((!other || ptrace(PTRACE_SEIZE, other, 0, 0) == 0) && dump_all() && let_go() &&
		    write(line[1], "", 1) == 1 && read(line[1], &byte, 1) == 1)
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

WITH_JOB(a_job_that_another_traces_runs_again_when_it_is_let_go)
{
	kill_dump_of_a_job_that_another_traces(0);
	assert_true(let_go());
	wait_for_guard();
	assert_int_equal(process->paused, 0);
}

/* A seized process would stop at its next signal. */
WITH_JOB(others_are_let_go_while_one_is_waited_for)
{
	pid_t other = unit_start_sleeper();
	bool is_traced = true;

	kill_dump_of_a_job_that_another_traces(other);
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

WITH_JOB(a_dump_that_is_complete_needs_no_guard)
{
	pid_t criu;

	criu = fork();
	if (!criu) {
		if (dump_all() && finish_dump(0) == 0)
			die();
		_exit(1);
	}
	unit_wait_for_killed(criu);
	assert_int_equal(unit_count_children(), 1);
	assert_int_equal(process->paused, 0);
	assert_true(unit_exists(MAIN_IMAGE));
}

/* A CRIU that is going to do @final with the tasks of a dump that succeeds. Between the steps of
 * the test and those of CRIU each waits for a byte of the other. */
struct ending_criu {
	pid_t pid;
	int line;
};

static bool meet(int line)
{
	char byte = 0;

	return write(line, "", 1) == 1 && read(line, &byte, 1) == 1;
}

/* CRIU: the dump is complete, and CRIU has no child. @then is what it does with the job. */
static void __attribute__((noreturn)) be_ending_criu(int final, bool (*then)(void), int line)
{
	/* If the test fails in between. */
	(void)alarm(LIMIT_MS / 2000);
	opts = final;
	if (!dump_all() || finish_dump(0) || unit_count_children() || !meet(line) || !then() ||
	    !meet(line))
		_exit(1);
	end_dump(0);
	die();
}

static struct ending_criu start_ending_criu(int final, bool (*then)(void))
{
	struct ending_criu criu;
	int line[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	criu = (struct ending_criu){ .pid = fork(), .line = line[0] };
	if (!criu.pid)
		be_ending_criu(final, then, line[1]);
	(void)close(line[1]);
	assert_int_equal(read(criu.line, &byte, 1), 1);
	return criu;
}

static void go_on(const struct ending_criu *criu)
{
	char byte;

	assert_int_equal(write(criu->line, "", 1), 1);
	assert_int_equal(read(criu->line, &byte, 1), 1);
}

static void end_criu(struct ending_criu *criu)
{
	assert_int_equal(write(criu->line, "", 1), 1);
	unit_wait_for_killed(criu->pid);
	(void)close(criu->line);
}

/* The tracer waits first, as CRIU does. */
static bool kill_job(void)
{
	return syscall(SYS_kill, tracee, SIGKILL) == 0 && waitpid(tracee, NULL, __WALL) == tracee;
}

static bool keep_job(void)
{
	return true;
}

/* From the pause to the death of the job its queues do not run. */
WITH_JOB(queues_of_a_job_that_criu_kills_stay_stopped)
{
	struct ending_criu criu = start_ending_criu(CRIU_FINAL_DEAD, kill_job);

	assert_int_equal(process->paused, 1);
	go_on(&criu);
	assert_int_equal(waitpid(tracee, NULL, 0), tracee);
	wait_for_guard();
	end_criu(&criu);
	assert_int_equal(process->paused, 1);
	assert_int_equal(process->calls[KFD_UNPAUSE], 0);
	assert_true(unit_exists(MAIN_IMAGE));
}

/* CRIU's post-dump script fails: CRIU lets go of the job, and may live on for long. */
WITH_JOB(a_job_that_criu_lets_go_of_runs_again)
{
	struct ending_criu criu = start_ending_criu(CRIU_FINAL_DEAD, let_go);

	assert_int_equal(process->paused, 1);
	go_on(&criu);
	wait_for_guard();
	assert_runs_again();
	end_criu(&criu);
	assert_true(unit_exists(MAIN_IMAGE));
	assert_int_equal(unit_count_children(), 1);
}

/* The images are complete by then. */
WITH_JOB(a_job_runs_again_whose_criu_is_killed_before_it_ends_it)
{
	struct ending_criu criu = start_ending_criu(CRIU_FINAL_DEAD, keep_job);

	go_on(&criu);
	assert_int_equal(process->paused, 1);
	end_criu(&criu);
	wait_for_guard();
	assert_runs_again();
	assert_true(unit_exists(MAIN_IMAGE));
}

/* Another dump, or a debugger, may come before the guard. */
WITH_JOB(a_job_that_another_traces_by_then_runs_in_the_end)
{
	struct ending_criu criu = start_ending_criu(CRIU_FINAL_DEAD, let_go);

	go_on(&criu);
	while (ptrace(PTRACE_SEIZE, tracee, 0, 0) < 0)
		assert_int_equal(errno, EPERM);
	end_criu(&criu);
	assert_true(let_go());
	wait_for_guard();
	assert_runs_again();
}

WITH_JOB(a_job_that_stays_is_not_left_to_a_guard)
{
	static const int finals[] = { CRIU_FINAL_ALIVE, CRIU_FINAL_STOPPED, 0, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(finals); i++) {
		struct ending_criu criu = start_ending_criu(finals[i], keep_job);

		assert_int_equal(process->paused, 0);
		assert_int_equal(unit_count_children(), 2);
		go_on(&criu);
		end_criu(&criu);
		(void)unlink(unit_path(MAIN_IMAGE));
	}
}

WITH_JOB(a_failed_dump_leaves_nothing_to_a_guard)
{
	pid_t criu = fork();

	if (!criu) {
		opts = CRIU_FINAL_DEAD;
		if (!dump_all() || finish_dump(-1) || process->paused)
			_exit(1);
		end_dump(-1);
		_exit(0);
	}
	assert_int_equal(unit_wait(criu), 0);
	assert_int_equal(process->calls[KFD_UNPAUSE], 1);
	assert_int_equal(unit_count_children(), 1);
	assert_false(unit_exists(MAIN_IMAGE));
}

/* Such a CRIU would become the guard's parent, and wait for it. */
WITH_JOB(a_criu_that_adopts_orphans_unpauses_itself)
{
	pid_t criu = fork();

	if (!criu) {
		opts = CRIU_FINAL_DEAD;
		if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || !dump_all() || finish_dump(0) ||
		    process->paused || unit_count_children() ||
		    !unit_logged("run for a moment before CRIU kills it", NULL))
			_exit(1);
		end_dump(0);
		_exit(0);
	}
	assert_int_equal(unit_wait(criu), 0);
	assert_int_equal(process->calls[KFD_UNPAUSE], 1);
}

/* If the dump failed, the job would be lost: its queues do not run, and its images would go. */
WITH_JOB(a_job_that_is_about_to_end_need_not_run)
{
	pid_t criu = fork();

	if (!criu) {
		opts = CRIU_FINAL_DEAD;
		if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || !dump_all())
			_exit(1);
		kernel.fail_op = KFD_UNPAUSE;
		kernel.fail_errno = ENOMEM;
		kernel.fail_count = 2;
		if (finish_dump(0) || !unit_logged("cannot unpause", NULL))
			_exit(2);
		end_dump(0);
		_exit(0);
	}
	assert_int_equal(unit_wait(criu), 0);
	assert_true(unit_exists(MAIN_IMAGE));
}

/* CRIU fails after the hook, so it lets go of the job: the guard does its work, and no image stays.
 */
WITH_JOB(a_dump_that_fails_at_last_runs_on_without_images)
{
	pid_t criu = fork();

	if (!criu) {
		opts = CRIU_FINAL_DEAD;
		if (!dump_all() || finish_dump(0) || !process->paused)
			_exit(1);
		end_dump(-1);
		if (!let_go())
			_exit(1);
		die();
	}
	unit_wait_for_killed(criu);
	wait_for_guard();
	assert_runs_again();
	assert_false(unit_exists(MAIN_IMAGE));
}
