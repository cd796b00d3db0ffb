// SPDX-License-Identifier: GPL-2.0-only
/* Tests which files of /dev/kfd a dump finds in the tasks. */
#include "dump_tree.h"

#include "kernel/proc.h"
#include "pause/kfd_files.h"
#include "pause/pause.h"

TREE(files_of_tracees_are_found_once_each)
{
	struct dump_session session = { 0 };
	struct member child;
	int inherited[2];

	join_tree(&members[0], make_process(), 2);
	join_tree(&members[1], make_process(), 1);
	/* This task has the files of others, one of them as a duplicate. */
	inherited[0] = members[0].fds[1];
	inherited[1] = dup(members[1].fds[0]);
	child = (struct member){ .pid = start_task(inherited, 2) };
	(void)close(inherited[1]);
	assert_int_equal(kfd_files_list_tree(members[0].fds[0], &session.tasks), 0);
	assert_int_equal(session.tasks.count, 4); /* the tracee of all tests is one of them */
	assert_int_equal(kfd_files_find(&session, 300), 0);
	assert_int_equal(session.num_files, 3);
	for (size_t i = 0; i < session.num_files; i++) {
		assert_true(session.files[i].fd >= 300);
		assert_int_equal(fcntl(session.files[i].fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(session.files[i].pid, members[i / 2].pid);
		assert_int_equal(fd_is_same(session.files[i].fd, members[i / 2].fds[i % 2]), 1);
		assert_int_equal(fd_is_same(session.files[i].fd, members[1 - i / 2].fds[0]), 0);
	}
	pause_close_files(&session);
	pid_list_done(&session.tasks);
	leave_tree(&child);
}

/* At each limit of descriptors: a process that the plugin overlooks would not be paused in time. */
TREE(without_descriptors_nothing_is_overlooked)
{
	struct rlimit old, few;
	struct dump_session session = { 0 };
	unsigned int failed = 0;
	int ret = -1;

	join_tree(&members[0], make_process(), 1);
	join_tree(&members[1], make_process(), 1);
	assert_int_equal(kfd_files_list_tree(members[0].fds[0], &session.tasks), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	for (few.rlim_cur = 3; ret && few.rlim_cur < 100; few.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		ret = kfd_files_find(&session, 0);
		failed += ret == -EMFILE;
		assert_true(!ret || ret == -EMFILE);
		if (ret)
			pause_close_files(&session);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(ret, 0);
	assert_true(failed > 0);
	assert_int_equal(session.num_files, 2);
	pause_close_files(&session);
	pid_list_done(&session.tasks);
}
