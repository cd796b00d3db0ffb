/* SPDX-License-Identifier: GPL-2.0-only */
/* Traced tasks with open files of /dev/kfd. Included by a test program once. */
#ifndef TEST_UNIT_DUMP_TREE_H
#define TEST_UNIT_DUMP_TREE_H

#include "dump_task.h"

#define FILES 4

/* A task with /dev/kfd open. This process traces it, and has the same files. */
struct member {
	struct fake_process *process;
	pid_t pid;
	int fds[FILES];
	size_t num_fds;
};

/* The child keeps @fds and no other device. It sleeps until this process kills it. */
static inline pid_t start_task_as(const int *fds, size_t num_fds, bool traced)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid) {
		(void)close(ready[1]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		(void)close(ready[0]);
		if (traced)
			assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL), 0);
		return pid;
	}
	for (int fd = 3; fd < 256; fd++) {
		bool kept = false;

		for (size_t i = 0; i < num_fds; i++)
			kept |= fds[i] == fd;
		if (!kept && fd != ready[1])
			(void)close(fd);
	}
	if (write(ready[1], "r", 1) != 1)
		_exit(1);
	(void)close(ready[1]);
	for (;;)
		(void)pause();
}

static inline pid_t start_task(const int *fds, size_t num_fds)
{
	return start_task_as(fds, num_fds, true);
}

static inline void join_tree(struct member *member, struct fake_process *process, size_t num_files)
{
	*member = (struct member){ .process = process, .num_fds = num_files };
	for (size_t i = 0; i < num_files; i++)
		member->fds[i] = open_kfd_of(process);
	member->pid = start_task(member->fds, num_files);
	process->pid = member->pid;
}

static inline void leave_tree(struct member *member)
{
	if (!member->pid)
		return;
	(void)kill(member->pid, SIGKILL);
	(void)waitpid(member->pid, NULL, 0);
	for (size_t i = 0; i < member->num_fds; i++)
		(void)close(member->fds[i]);
	member->pid = 0;
}

/* Those that are here leave at the end of the test. */
static struct member members[3];

static inline int end_tree(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		leave_tree(&members[i]);
	return end(state);
}

#define TREE(name) TEST_WITH(name, begin, end_tree)

#endif
