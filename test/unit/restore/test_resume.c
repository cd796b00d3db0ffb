// SPDX-License-Identifier: GPL-2.0-only
/* The start of the queues, when several tasks have GPU state: the queues of one task may use memory
 * that another task owns, and a restore fails as a whole. This program is CRIU's main process, and
 * forks the tasks. */
#include "fake_gpu.h"

#include "handoff_task.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "criu/options.h"
#include "memory/restore_shared.h"
#include "restore/resume.h"
#include "session/restore_session.h"

#define TASKS 3

enum fault {
	NONE,
	CONTENTS_NOT_SENT,
	STATE_INCOMPLETE,
	MEMORY_LAZY,
	MEMORY_MISSING,
};

static struct {
	struct options options;
	struct restore_session session;
	struct set *sets[TASKS];
	pid_t pids[TASKS];
} job;

/* How many tasks had their queues started, and how many of them before all contents were there. */
static struct {
	unsigned int all;
	unsigned int early;
} started;

int __wrap_kfd_resume(pid_t pid);

int __wrap_kfd_resume(pid_t pid)
{
	bool complete = true;

	(void)pid;
	for (size_t i = 0; i < TASKS; i++)
		complete = complete && bos_are_filled(job.sets[i]);
	started.all++;
	started.early += !complete;
	return 0;
}

/* As if some task did not end in time. */
static bool tasks_hang;

int __real_reap_kill(const struct pid_list *tasks);
int __wrap_reap_kill(const struct pid_list *tasks);
int __wrap_reap_kill(const struct pid_list *tasks)
{
	int ret = __real_reap_kill(tasks);

	return tasks_hang ? -ETIMEDOUT : ret;
}

static bool room_for_threads = true;

bool __wrap_cgroup_room_has_threads(void);
bool __wrap_cgroup_room_has_threads(void)
{
	return room_for_threads;
}

static _Noreturn void run_task(const struct set *set, bool sends, int ready)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sends && handoff_send(job.session.handoff, &set->job, 1) < 0)
		_exit(1);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

/* The task has handed over its contents, and is traced as CRIU does it. */
static pid_t start_task(const struct set *set, bool sends)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		run_task(set, sends, ready[1]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL), 0);
	return pid;
}

/* The checksums of BOs that @set has in its image. */
static void add_checksums(struct set *set)
{
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	for (size_t i = 0; i < set->num_bos; i++) {
		void *memory = map_bo(&set->bos[i]);

		memset(memory, 0, set->bos[i].size);
		(void)munmap(memory, set->bos[i].size);
	}
}

static void add_task(size_t index, enum fault fault)
{
	struct restore_shared *shared = job.session.shared;
	struct set *set = make_task_set((uint32_t)index);
	pid_t pid;

	add_checksums(set);
	pid = start_task(set, fault != CONTENTS_NOT_SENT);
	restore_shared_set_phase(shared, pid,
				 fault == STATE_INCOMPLETE ? PHASE_IN_PROGRESS : PHASE_HANDED_OFF);
	/* No process has a mapping of the first page. */
	if (fault == MEMORY_MISSING)
		assert_int_equal(
			restore_shared_add_range(shared, pid, (struct proc_range){ 0, PAGE }), 0);
	job.sets[index] = set;
	job.pids[index] = pid;
}

static void prepare_job(void)
{
	memset(&job, 0, sizeof(job));
	memset(&started, 0, sizeof(started));
	job.session.options = &job.options;
	assert_int_equal(restore_shared_new(&job.session.shared), 0);
	assert_int_equal(handoff_new(&settings, &job.session.shared->totals, &job.session.handoff),
			 0);
}

/* Task @index has @fault. */
static void start_job(enum fault fault, size_t index)
{
	prepare_job();
	resume_listen(&job.session);
	for (size_t i = 0; i < TASKS; i++)
		add_task(i, i == index ? fault : NONE);
	if (fault == MEMORY_LAZY)
		unit_print("smaps", "VmFlags: rd wr um\n");
}

static void end_job(void)
{
	for (size_t i = 0; i < TASKS; i++)
		free_set(job.sets[i]);
	pid_list_done(&job.session.resumed.processes);
	handoff_free(job.session.handoff);
	restore_shared_free(job.session.shared);
}

#define TEST(name) TEST_WITH(name, fake_gpu_begin, fake_gpu_end)

/* CRIU calls the hook for the root of the tree first. Task @index is another one, or that root. */
static void expect_no_start(enum fault fault, size_t index, const char *error)
{
	start_job(fault, index);
	unit_forget_lines();
	for (size_t i = 0; i < TASKS; i++)
		assert_fails(resume_task(&job.session, job.pids[i]));
	assert_int_equal(started.all, 0);
	assert_logged("Error (amdgpu_plugin): ", error);
	assert_int_equal(unit_count_lines("all tasks are killed"), !tasks_hang);
	for (size_t i = 0; i < TASKS; i++)
		unit_wait_for_killed(job.pids[i]);
	end_job();
}

TEST(no_queue_starts_if_the_contents_of_one_task_do_not_arrive)
{
	for (size_t i = 0; i < TASKS; i++)
		expect_no_start(CONTENTS_NOT_SENT, i, "its contents did not arrive");
}

TEST(no_queue_starts_if_the_state_of_one_task_is_incomplete)
{
	for (size_t i = 0; i < TASKS; i++)
		expect_no_start(STATE_INCOMPLETE, i, "its GPU state is incomplete");
}

TEST(no_queue_starts_if_one_task_lacks_memory)
{
	for (size_t i = 0; i < TASKS; i++)
		expect_no_start(MEMORY_MISSING, i, "has no such memory");
	expect_no_start(MEMORY_LAZY, 0, "restore without --lazy-pages");
}

TEST(a_task_that_does_not_end_is_no_killed_one)
{
	tasks_hang = true;
	expect_no_start(STATE_INCOMPLETE, 0, "its GPU state is incomplete");
	tasks_hang = false;
	assert_logged("Warn  (amdgpu_plugin): restore: ",
		      "have not ended 10 seconds after SIGKILL");
}

/* Where the tasks need all threads that a limit of processes leaves. */
TEST(no_thread_loads_beside_tasks_that_have_little_room_for_theirs)
{
	struct stat before, after;

	prepare_job();
	assert_int_equal(stat("/proc/self/task", &before), 0);
	room_for_threads = false;
	resume_listen(&job.session);
	room_for_threads = true;
	assert_false(job.session.shared->handoff_is_ready);
	assert_int_equal(stat("/proc/self/task", &after), 0);
	assert_int_equal(after.st_nlink, before.st_nlink);
	assert_logged("Warn  (amdgpu_plugin): contents: a limit of processes");
	handoff_free(job.session.handoff);
	restore_shared_free(job.session.shared);
}
