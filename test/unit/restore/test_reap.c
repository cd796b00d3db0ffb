// SPDX-License-Identifier: GPL-2.0-only
/* The end of traced tasks that are killed: their tracer sees it, however many threads and
 * descendants the task has, and in a pid namespace, too. */
#include "host.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kernel/proc.h"
#include "restore/reap.h"

#define THREADS 8
/* Which thread of a killed process ends last is up to the scheduler. */
#define ROUNDS 20

static void *stay(void *argument)
{
	(void)argument;
	for (;;)
		(void)pause();
	return NULL;
}

/* A task: @children processes below it, and @threads more threads. Writes a byte when complete. */
static _Noreturn void run_task(int ready, int threads, int children)
{
	pthread_t thread;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < children; i++) {
		if (!fork())
			(void)stay(NULL);
	}
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&thread, NULL, stay, NULL))
			abort();
	}
	if (write(ready, "r", 1) != 1)
		abort();
	(void)stay(NULL);
	abort();
}

static pid_t start_task(unsigned long namespaces, int threads, int children)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (!pid)
		run_task(ready[1], threads, children);
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(close(ready[0]), 0);
	return pid;
}

/* Calls @use, unless it is NULL, for each thread. Return: the last one. The kernel lists the first
 * one first. */
static pid_t for_each_thread(pid_t pid, void (*use)(pid_t tid))
{
	pid_t last = 0;
	char path[64];
	struct dirent *entry;
	DIR *stream;

	assert_true(snprintf(path, sizeof(path), "/proc/%d/task", pid) > 0);
	stream = opendir(path);
	assert_non_null(stream);
	while ((entry = readdir(stream))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && use)
			use(tid);
		last = tid > 0 ? tid : last;
	}
	assert_int_equal(closedir(stream), 0);
	return last;
}

static void seize(pid_t tid)
{
	assert_int_equal(ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_EXITKILL), 0);
}

static void seize_tree(pid_t top, struct pid_list *ret_tree)
{
	assert_int_equal(proc_list_tree(top, ret_tree), 0);
	for (size_t i = 0; i < ret_tree->count; i++)
		(void)for_each_thread(ret_tree->pids[i], seize);
}

/* What CRIU does next. */
static void assert_reported(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void kill_tasks(unsigned long namespaces, int threads, int children)
{
	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid = start_task(namespaces, threads, children);
		_cleanup_(pid_list_done) struct pid_list tree = { 0 };

		seize_tree(pid, &tree);
		assert_int_equal(reap_kill(&tree), 0);
		assert_reported(pid);
		/* The first process of a namespace has waited for the others. */
		for (size_t i = 0; !namespaces && i < tree.count; i++) {
			if (tree.pids[i] != pid)
				assert_reported(tree.pids[i]);
		}
	}
}

/* A wait without end fails the test. */
int tests_begin(void **state)
{
	(void)state;
	(void)alarm(600);
	return 0;
}

PLAIN_TEST(task_with_threads)
{
	kill_tasks(0, THREADS, 0);
}

PLAIN_TEST(tree_of_tasks)
{
	kill_tasks(0, THREADS, 3);
}

/* A job in a container. */
PLAIN_TEST(first_process_with_threads)
{
	kill_tasks(CLONE_NEWPID, THREADS, 0);
}

PLAIN_TEST(first_process_with_children)
{
	kill_tasks(CLONE_NEWPID, 0, 3);
}

PLAIN_TEST(first_process_with_both)
{
	kill_tasks(CLONE_NEWPID, THREADS, 3);
}

static void kill_one(pid_t pid)
{
	assert_int_equal(reap_kill(&(const struct pid_list){ .pids = &pid, .count = 1 }), 0);
	assert_reported(pid);
}

/* Another process traces a thread of the task, and does not wait for its end. */
PLAIN_TEST(task_that_does_not_end)
{
	pid_t pid = start_task(0, 1, 0), tid, tracer;
	int ready[2];
	char byte;

	tid = for_each_thread(pid, NULL);
	assert_int_equal(pipe(ready), 0);
	tracer = fork();
	if (!tracer) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		(void)stay(NULL);
	}
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(close(ready[0]), 0);
	assert_int_equal(reap_kill(&(const struct pid_list){ .pids = &pid, .count = 1 }),
			 -ETIMEDOUT);
	kill_one(tracer);
	assert_reported(pid);
}

/* The children of other tasks live on. */
PLAIN_TEST(children_survive)
{
	pid_t pid = start_task(0, 0, 1);
	_cleanup_(pid_list_done) struct pid_list tree = { 0 };

	seize_tree(pid, &tree);
	assert_int_equal(tree.count, 2);
	kill_one(pid);
	assert_int_equal(waitpid(tree.pids[1], NULL, __WALL | WNOHANG), 0);
	kill_one(tree.pids[1]);
}

PLAIN_TEST(child_without_tracing)
{
	kill_one(start_task(0, 0, 0));
}

/* In the tracer: starts a task, stops it as CRIU does, binds it, and ends. Tells its pid. */
static _Noreturn void trace_and_end(int line)
{
	_cleanup_(pid_list_done) struct pid_list tasks = { 0 };
	pid_t pid = fork();
	int status;

	if (!pid)
		(void)stay(NULL);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 ||
	    waitpid(pid, &status, __WALL) != pid || pid_list_add(&tasks, pid) < 0 ||
	    reap_bind(&tasks) < 0 || write(line, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	_exit(0);
}

PLAIN_TEST(bound_task_dies_with_its_tracer)
{
	int line[2], status;
	pid_t tracer, pid;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(line), 0);
	tracer = fork();
	if (!tracer)
		trace_and_end(line[1]);
	assert_int_equal(close(line[1]), 0);
	assert_int_equal(read(line[0], &pid, sizeof(pid)), sizeof(pid));
	assert_int_equal(close(line[0]), 0);
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_reported(pid);
}
