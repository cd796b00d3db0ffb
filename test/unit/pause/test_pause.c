// SPDX-License-Identifier: GPL-2.0-only
/* Tests pauses of several KFD processes: all are paused before the first copy, and none runs before
 * CRIU has saved all of them. */
#include "dump_tree.h"

#include <dirent.h>

/* CRIU's function; the plugin calls it before it ends CRIU. */
void network_unlock(void);

void network_unlock(void)
{
	unit_print("unlocked", "\n");
}

/* How often the plugin has listed all processes of the machine. */
static unsigned int lists_of_all_processes;

DIR *opendir(const char *name)
{
	static DIR *(*real)(const char *);

	if (!real)
		real = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
	lists_of_all_processes += !strcmp(name, "/proc");
	return real(name);
}

/* The comparison of this number (from 1) fails; 0: none. */
static unsigned int failing_comparison;

static int fail_comparison(long number)
{
	return number == SYS_kcmp && failing_comparison && !--failing_comparison ? EPERM : 0;
}

/* A process in between starts the task and ends, so the task is no descendant of this process. */
static pid_t start_foreigner(const int *fds, size_t num_fds)
{
	pid_t between, pid = 0;
	int line[2];

	assert_int_equal(pipe(line), 0);
	between = fork();
	if (!between) {
		pid = start_task_as(fds, num_fds, false);
		_exit(write(line[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	assert_int_equal(read(line[0], &pid, sizeof(pid)), sizeof(pid));
	assert_int_equal(waitpid(between, NULL, 0), between);
	(void)close(line[0]);
	(void)close(line[1]);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL), 0);
	return pid;
}

/* Three processes with the same counts: only their files tell them apart. */
static void make_tree(void)
{
	for (size_t i = 0; i < 3; i++) {
		struct fake_process *process = make_process();

		add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000 + (i << 20), 0x3000,
		       0x100000000 + (i << 16));
		join_tree(&members[i], process, 1);
	}
	gpu.wants_all_paused = true;
}

static void assert_none_paused(void)
{
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(members[i].process->paused, 0);
}

/* A process that sees no GPU cannot be paused. The dump goes on until CRIU shows its file. */
TEST(a_process_that_cannot_be_paused_early_waits_for_its_turn)
{
	struct member with, without;
	_cleanup_kfd_ CriuKfd *kfd = NULL;

	join_tree(&with, make_process(), 1);
	join_tree(&without, add_process(tracee), 1);
	begin_dump(with.fds[0], 5);
	assert_int_equal(dump_file(without.fds[0], 6), 0);
	end_dump(0);
	assert_int_equal(image_read_kfd(6, &kfd), 0);
	assert_int_equal(kfd->num_of_gpus, 0);
	assert_int_equal(with.process->paused, 0);
	leave_tree(&with);
	leave_tree(&without);
}

/* CRIU writes this image when it has saved all of a process. */
static void write_core(const struct fake_process *process)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "core-%d.img", process->pid);
	unit_write(path, "", 0);
}

/* CRIU never shows a file of the second process, so its state would be in no image. */
TREE(a_process_without_an_image_fails_the_dump)
{
	make_tree();
	begin_dump(members[0].fds[0], 5);
	assert_int_equal(dump_file(members[2].fds[0], 7), 0);
	write_core(members[1].process);
	assert_fails(finish_dump(0));
	assert_logged("Error (amdgpu_plugin): ", "was not saved");
	end_dump(-1);
	assert_none_paused();
	assert_false(unit_exists("amdgpu-kfd-5.img"));
}

/* CRIU before 4.3 does not ask for a result at the end. It would kill the tasks and exit with 0. */
TREE(a_dump_that_fails_at_its_end_ends_criu_with_an_error)
{
	pid_t criu;

	fake_kernel_share();
	criu = fork();
	if (!criu) {
		make_tree();
		start_dump();
		if (dump_file(members[0].fds[0], 5) || dump_file(members[2].fds[0], 7))
			_exit(2);
		write_core(members[1].process);
		end_dump(0);
		_exit(0);
	}
	assert_int_equal(unit_wait(criu), 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(kernel.processes[i].calls[KFD_PROCESS_INFO], 1);
		assert_int_equal(kernel.processes[i].paused, 0);
		kernel.processes[i].bos = NULL; /* in CRIU's memory */
	}
	assert_true(unit_exists("unlocked"));
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	assert_false(unit_exists("amdgpu-kfd-7.img"));
}

/* UNPAUSE has found out that the process was paused, and the driver does not pause it again. */
TEST(a_process_that_stays_stopped_is_named)
{
	struct member member, child;
	int inherited;

	join_tree(&member, make_process(), 1);
	/* The process has closed this file, so only its child has it. */
	inherited = open_kfd_of(member.process);
	child = (struct member){ .pid = start_task(&inherited, 1) };
	(void)close(inherited);
	kernel.slow_pause = 2;
	start_dump();
	assert_fails(dump_file(member.fds[0], 5));
	assert_logged("Error (amdgpu_plugin): ", "cannot pause the process,",
		      "they may stay stopped", "only ending the process helps");
	end_dump(-1);
	assert_int_equal(unit_count_errors(), 1);
	leave_tree(&child);
	leave_tree(&member);
}

/* CRIU shows a file that no task had when all were stopped, of a process that is dumped or not. */
TREE(a_file_that_appears_between_two_hooks_fails_the_dump)
{
	for (size_t i = 0; i < 2; i++) {
		int unlisted;

		join_tree(&members[0], make_process(), 1);
		unit_forget_lines();
		begin_dump(members[0].fds[0], 5);
		unlisted = open_kfd_of(i ? make_process() : members[0].process);
		assert_fails(dump_file(unlisted, 6));
		assert_logged("Error (amdgpu_plugin): ", "kfd 6", "no task had this file");
		end_dump(-1);
		assert_int_equal(unit_count_errors(), 1);
		(void)close(unlisted);
		assert_int_equal(members[0].process->paused, 0);
		assert_false(unit_exists("amdgpu-kfd-5.img"));
		leave_tree(&members[0]);
	}
}

/* A filter of system calls. */
static int fail_all_comparisons(long number)
{
	return number == SYS_kcmp ? EPERM : 0;
}

static int fail_copies(long number)
{
	return number == SYS_pidfd_getfd ? ENOSYS : 0;
}

TREE(without_the_files_of_all_tasks_nothing_is_paused)
{
	int (*const failures[])(long number) = { fail_all_comparisons, fail_copies };
	make_tree();
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
		failing_syscall = failures[i];
		unit_forget_lines();
		start_dump();
		assert_fails(dump_file(members[0].fds[0], 5));
		assert_logged("Error (amdgpu_plugin): ", "pidfd_getfd and kcmp", "seccomp");
		end_dump(-1);
		assert_int_equal(unit_count_errors(), 1);
	}
	failing_syscall = NULL;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(members[i].process->calls[KFD_PROCESS_INFO], 0);
}

/* CRIU freezes the whole cgroup of a container, but dumps only the tree. */
TREE(a_process_that_is_frozen_but_not_dumped_is_not_touched)
{
	struct fake_process *other = make_process();
	int fd = open_kfd_of(other);
	pid_t foreigner;

	foreigner = start_foreigner(&fd, 1);
	other->pid = foreigner;
	join_tree(&members[0], make_process(), 1);
	begin_dump(members[0].fds[0], 5);
	assert_int_equal(members[0].process->paused, 1);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	assert_int_equal(other->calls[KFD_PROCESS_INFO], 0);
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	(void)kill(foreigner, SIGKILL);
	(void)waitpid(foreigner, NULL, __WALL);
	(void)close(fd);
}

/* A process that maps GPU memory without /dev/kfd fails a dump that it is part of. CRIU does not
 * name this one, so the plugin does not look at it. */
TREE(a_process_that_is_not_named_is_not_looked_at)
{
	make_tree();
	gpu.wants_all_paused = false;
	start_dump();
	name_task(members[2].pid);
	name_task(members[0].pid);
	assert_int_equal(dump_file(members[0].fds[0], 5), 0);
	assert_int_equal(members[0].process->paused, 1);
	assert_int_equal(members[1].process->paused, 0);
	assert_int_equal(members[2].process->paused, 1);
	assert_int_equal(dump_file(members[2].fds[0], 7), 0);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	assert_int_equal(members[1].process->calls[KFD_PROCESS_INFO], 0);
}

/* The machine may have thousands of processes, and the job stands still meanwhile. */
TREE(all_processes_are_listed_once_for_a_dump)
{
	make_tree();
	start_dump();
	for (size_t i = 0; i < 3; i++)
		name_task(members[i].pid);
	lists_of_all_processes = 0;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(dump_file(members[i].fds[0], 5 + (int)i), 0);
	assert_int_equal(finish_dump(0), 0);
	/* By the guard. */
	assert_int_equal(lists_of_all_processes, 1);
	end_dump(0);
}

/* CRIU 3.17.1 names no process and traces the whole cgroup, also processes above the tree. */
TREE(a_process_that_is_paused_but_not_dumped_fails_no_dump)
{
	make_tree();
	/* The image of an older dump to the same directory. */
	write_core(members[1].process);
	begin_dump(members[0].fds[0], 5);
	assert_int_equal(dump_file(members[2].fds[0], 7), 0);
	write_core(members[0].process);
	write_core(members[2].process);
	assert_int_equal(finish_dump(0), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "is not part of the dump");
	end_dump(0);
	assert_none_paused();
	assert_true(unit_exists("amdgpu-kfd-5.img"));
}

/* CRIU opens a file again in the process with the lowest pid that has the file. */
TEST(a_file_that_another_process_would_open_again_fails_the_dump)
{
	struct member owner = { .process = make_process(), .num_fds = 1 };
	char words[64];
	pid_t other;

	owner.fds[0] = open_kfd_of(owner.process);
	other = start_task(owner.fds, 1);
	owner.pid = start_task(owner.fds, 1);
	if (other > owner.pid) {
		pid_t lower = owner.pid;

		owner.pid = other;
		other = lower;
	}
	owner.process->pid = owner.pid;
	start_dump();
	assert_fails(dump_file(owner.fds[0], 5));
	(void)snprintf(words, sizeof(words), "/dev/kfd of process %d: process %d has", owner.pid,
		       other);
	assert_logged("Error (amdgpu_plugin): ", words);
	end_dump(-1);
	assert_int_equal(owner.process->paused, 0);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	leave_tree(&owner);
}

/* If the plugin took the file for another file of a paused process, it would have no image. */
TREE(a_file_that_cannot_be_told_from_others_fails_the_dump)
{
	join_tree(&members[0], make_process(), 1);
	start_dump();
	/* The first two comparisons find the files of the tree. */
	failing_comparison = 3;
	failing_syscall = fail_comparison;
	assert_fails(dump_file(members[0].fds[0], 5));
	assert_logged("Error (amdgpu_plugin): ", strerror(EPERM));
	end_dump(-1);
	assert_int_equal(members[0].process->paused, 0);
}
