// SPDX-License-Identifier: GPL-2.0-only
/* A tree of several KFD processes: all of them are stopped before a byte of one is copied, and none
 * runs before CRIU is through with all of them. */
#include "dump_task.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include "dump/kfd_files.h"
#include "kernel/proc.h"

/* Of CRIU, for a dump that fails. */
void network_unlock(void);

void network_unlock(void)
{
	unit_print("unlocked", "\n");
}

#define FILES     4
#define ARGUMENTS 6

/* The comparison of this number (from 1) fails; 0: none. */
static unsigned int failing_comparison;

/* Takes the place of the C library's. */
long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long arguments[ARGUMENTS];
	va_list list;

	if (number == SYS_kcmp && failing_comparison && !--failing_comparison) {
		errno = EPERM;
		return -1;
	}
	va_start(list, number);
	for (int i = 0; i < ARGUMENTS; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (!real)
		real = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		    arguments[5]);
}

/* A task with /dev/kfd open, as CRIU has it: traced, and its descriptors shown to the plugin. */
struct member {
	struct fake_process *process;
	pid_t pid;
	int fds[FILES];
	size_t num_fds;
};

/* The child keeps @fds and no other device; it sleeps until it is killed. */
static pid_t start_task_as(const int *fds, size_t num_fds, bool traced)
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

static pid_t start_task(const int *fds, size_t num_fds)
{
	return start_task_as(fds, num_fds, true);
}

/* By a process in between that ends: so it is no descendant of whoever dumps. */
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

static void join_tree(struct member *member, struct fake_process *process, size_t num_files)
{
	*member = (struct member){ .process = process, .num_fds = num_files };
	for (size_t i = 0; i < num_files; i++)
		member->fds[i] = open_kfd_of(process);
	member->pid = start_task(member->fds, num_files);
	process->pid = member->pid;
}

static void leave_tree(struct member *member)
{
	(void)kill(member->pid, SIGKILL);
	(void)waitpid(member->pid, NULL, 0);
	for (size_t i = 0; i < member->num_fds; i++)
		(void)close(member->fds[i]);
}

/* Three of the same counts, so that nothing but their files tells them apart. */
static void make_tree(struct member members[3])
{
	for (size_t i = 0; i < 3; i++) {
		struct fake_process *process = make_process();

		add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000 + (i << 20), 0x3000,
		       0x100000000 + (i << 16));
		join_tree(&members[i], process, 1);
	}
	gpu.wants_all_paused = true;
}

static void assert_all_paused(const struct member *members, size_t count, unsigned int paused)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(members[i].process->paused, paused);
}

static void all_processes_are_paused_before_the_first_copy(void **state)
{
	struct member members[3];

	(void)state;
	make_tree(members);
	start_dump();
	assert_int_equal(dump_file(members[0].fds[0], 5), 0);
	assert_true(gpu.submissions > 0);
	assert_all_paused(members, 3, 1);
	assert_int_equal(dump_file(members[1].fds[0], 6), 0);
	assert_int_equal(dump_file(members[2].fds[0], 7), 0);
	assert_all_paused(members, 3, 1);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(members[i].process->calls[KFD_PROCESS_INFO], 1);
		assert_int_equal(members[i].process->calls[KFD_UNPAUSE], 1);
		/* To tell the processes apart took none: each failed one is a line in the kernel's
		 * log. */
		assert_int_equal(members[i].process->calls[KFD_CHECKPOINT], 1);
		leave_tree(&members[i]);
	}
	assert_all_paused(members, 3, 0);
	assert_int_equal(unit_count_lines("does not save trap handlers"), 1);
	assert_int_equal(gpu.violations, 0);
	/* The plugin told the processes apart without lines in the kernel's log. */
	assert_int_equal(kernel.failed_checkpoints, 0);
}

/* Whichever is shown first: each image has the state of its own process. */
static void images_are_of_the_processes_whose_files_they_are(void **state)
{
	static const size_t order[] = { 2, 0, 1 };
	struct member members[3];

	(void)state;
	make_tree(members);
	start_dump();
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(dump_file(members[order[i]].fds[0], 5 + (int)order[i]), 0);
	end_dump(0);
	for (size_t i = 0; i < 3; i++) {
		CriuKfd *kfd;

		assert_int_equal(image_read_kfd(5 + (int)i, &kfd), 0);
		assert_int_equal(kfd->n_bo_entries, 3);
		assert_int_equal(kfd->bo_entries[2]->addr, 0x800000 + (i << 20));
		criu_kfd__free_unpacked(kfd, NULL);
		leave_tree(&members[i]);
	}
	assert_all_paused(members, 3, 0);
}

/* CRIU fails before it has come to the others, or the plugin does. */
static void a_dump_that_ends_early_leaves_all_running(void **state)
{
	static const unsigned int failing_pauses[] = { 0, 1 };
	struct member members[3];

	(void)state;
	make_tree(members);
	for (size_t i = 0; i < ARRAY_SIZE(failing_pauses); i++) {
		kernel.fail_op = KFD_PROCESS_INFO;
		kernel.fail_errno = EIO;
		kernel.fail_count = failing_pauses[i];
		unit_forget_lines();
		start_dump();
		if (failing_pauses[i]) {
			assert_fails(dump_file(members[0].fds[0], 5));
			assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
		} else {
			assert_int_equal(dump_file(members[0].fds[0], 5), 0);
			assert_all_paused(members, 3, 1);
		}
		end_dump(-1);
		assert_all_paused(members, 3, 0);
		assert_false(unit_exists("amdgpu-kfd-5.img"));
	}
	for (size_t i = 0; i < 3; i++)
		leave_tree(&members[i]);
}

static void more_files_and_inherited_ones_pause_nobody_twice(void **state)
{
	struct member parent, child;

	(void)state;
	join_tree(&parent, make_process(), 3);
	child = (struct member){ .num_fds = 0, .pid = start_task(parent.fds, 1) };
	start_dump();
	for (int i = 0; i < 3; i++)
		assert_int_equal(dump_file(parent.fds[i], 5 + i), 0);
	assert_int_equal(parent.process->paused, 1);
	end_dump(0);
	assert_int_equal(parent.process->calls[KFD_PROCESS_INFO], 1);
	assert_int_equal(parent.process->paused, 0);
	leave_tree(&child);
	leave_tree(&parent);
}

/* One that sees no GPU, and one whose process is not part of the dump, are no hindrance
 * until CRIU shows them. */
static void what_cannot_be_paused_early_waits_for_its_turn(void **state)
{
	struct member with, without;
	CriuKfd *kfd;

	(void)state;
	join_tree(&with, make_process(), 1);
	join_tree(&without, add_process(tracee), 1);
	start_dump();
	assert_int_equal(dump_file(with.fds[0], 5), 0);
	assert_int_equal(dump_file(without.fds[0], 6), 0);
	end_dump(0);
	assert_int_equal(image_read_kfd(6, &kfd), 0);
	assert_int_equal(kfd->num_of_gpus, 0);
	criu_kfd__free_unpacked(kfd, NULL);
	assert_int_equal(with.process->paused, 0);
	leave_tree(&with);
	leave_tree(&without);
}

/* As CRIU does when it has saved all of a process. */
static void write_core(const struct fake_process *process)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "core-%d.img", process->pid);
	unit_write(path, "", 0);
}

/* What it was paused by was another file, which CRIU has not asked for: its state would
 * be in no image. */
static void a_process_that_nobody_asks_for_fails_the_dump(void **state)
{
	struct member members[3];

	(void)state;
	make_tree(members);
	start_dump();
	assert_int_equal(dump_file(members[0].fds[0], 5), 0);
	assert_int_equal(dump_file(members[2].fds[0], 7), 0);
	write_core(members[1].process);
	assert_fails(finish_dump(0));
	assert_logged("Error (amdgpu_plugin): ", "was not saved");
	end_dump(-1);
	assert_all_paused(members, 3, 0);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	for (size_t i = 0; i < 3; i++)
		leave_tree(&members[i]);
}

/* CRIU before 4.3 does not ask for a result at the end: it would kill the tasks, and exit with 0.
 */
static void a_dump_that_fails_at_its_end_ends_criu_with_an_error(void **state)
{
	struct member members[3];
	pid_t criu;
	int status;

	(void)state;
	fake_kernel_share();
	criu = fork();
	if (!criu) {
		make_tree(members);
		start_dump();
		if (dump_file(members[0].fds[0], 5) || dump_file(members[2].fds[0], 7))
			_exit(2);
		write_core(members[1].process);
		end_dump(0);
		_exit(0);
	}
	assert_int_equal(waitpid(criu, &status, 0), criu);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(kernel.processes[i].calls[KFD_PROCESS_INFO], 1);
		assert_int_equal(kernel.processes[i].paused, 0);
		kernel.processes[i].bos = NULL; /* in CRIU's memory */
	}
	assert_true(unit_exists("unlocked"));
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	assert_false(unit_exists("amdgpu-kfd-7.img"));
}

/* A second pause could not be undone, as UNPAUSE is refused where it would be the second. */
static void a_process_whose_counts_have_changed_is_not_paused_twice(void **state)
{
	struct member member;

	(void)state;
	join_tree(&member, make_process(), 2);
	/* What CHECKPOINT says, by the second file, of a pause by the first. */
	kernel.fail_op = KFD_CHECKPOINT;
	kernel.fail_errno = EINVAL;
	kernel.fail_count = 1;
	start_dump();
	assert_int_equal(dump_file(member.fds[0], 5), 0);
	assert_int_equal(member.process->paused, 1);
	assert_logged("Warn  (amdgpu_plugin): ", "changed");
	assert_int_equal(dump_file(member.fds[1], 6), 0);
	assert_int_equal(member.process->paused, 1);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	assert_int_equal(member.process->paused, 0);
	leave_tree(&member);
}

/* The second file is in no list of files, so the driver has to be asked whose it is. */
static void a_process_that_changes_after_it_is_saved_fails_the_dump(void **state)
{
	struct member member;
	int unlisted;

	(void)state;
	join_tree(&member, make_process(), 1);
	unlisted = open_kfd_of(member.process);
	start_dump();
	assert_int_equal(dump_file(member.fds[0], 5), 0);
	kernel.fail_op = KFD_CHECKPOINT;
	kernel.fail_errno = EINVAL;
	kernel.fail_count = 1;
	assert_fails(dump_file(unlisted, 6));
	assert_logged("Error (amdgpu_plugin): ", "kfd 6", strerror(EAGAIN));
	end_dump(-1);
	(void)close(unlisted);
	assert_int_equal(member.process->paused, 0);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	leave_tree(&member);
}

/* As of somebody who looks into a container: CRIU freezes the whole cgroup, but
 * dumps the tree alone. */
static void who_is_frozen_but_not_dumped_is_let_alone(void **state)
{
	struct member member;
	struct fake_process *other = make_process();
	int fd = open_kfd_of(other);
	pid_t foreigner;

	(void)state;
	foreigner = start_foreigner(&fd, 1);
	other->pid = foreigner;
	join_tree(&member, make_process(), 1);
	start_dump();
	assert_int_equal(dump_file(member.fds[0], 5), 0);
	assert_int_equal(member.process->paused, 1);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	assert_int_equal(other->calls[KFD_PROCESS_INFO], 0);
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	(void)kill(foreigner, SIGKILL);
	(void)waitpid(foreigner, NULL, __WALL);
	(void)close(fd);
	leave_tree(&member);
}

static void name_task(pid_t pid)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_PAUSE_DEVICES];

	assert_int_equal(hook(pid), -ENOTSUP);
}

/* Somebody who looks in and has memory of a GPU mapped, but not /dev/kfd open, would fail the dump
 * if he were of it. */
static void who_is_not_named_is_not_even_looked_at(void **state)
{
	struct member members[3];

	(void)state;
	make_tree(members);
	gpu.wants_all_paused = false;
	start_dump();
	name_task(members[2].pid);
	name_task(members[0].pid);
	assert_int_equal(dump_file(members[0].fds[0], 5), 0);
	assert_all_paused(&members[0], 1, 1);
	assert_all_paused(&members[1], 1, 0);
	assert_all_paused(&members[2], 1, 1);
	assert_int_equal(dump_file(members[2].fds[0], 7), 0);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	assert_int_equal(members[1].process->calls[KFD_PROCESS_INFO], 0);
	for (size_t i = 0; i < 3; i++)
		leave_tree(&members[i]);
}

/* Hosts that name nobody: they trace the whole cgroup, also who stands above the tree. */
static void who_is_paused_but_not_dumped_spoils_no_dump(void **state)
{
	struct member members[3];

	(void)state;
	make_tree(members);
	/* Of an older dump to the same directory. */
	write_core(members[1].process);
	start_dump();
	assert_int_equal(dump_file(members[0].fds[0], 5), 0);
	assert_int_equal(dump_file(members[2].fds[0], 7), 0);
	write_core(members[0].process);
	write_core(members[2].process);
	assert_int_equal(finish_dump(0), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "is not dumped");
	end_dump(0);
	assert_all_paused(members, 3, 0);
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	for (size_t i = 0; i < 3; i++)
		leave_tree(&members[i]);
}

/* CRIU opens a file again in the process with the lowest pid of those that have it. */
static void a_file_that_another_process_would_open_again_fails_the_dump(void **state)
{
	struct member owner = { .process = make_process(), .num_fds = 1 };
	char words[64];
	pid_t other;

	(void)state;
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
	(void)snprintf(words, sizeof(words), "kfd 5 of process %d: process %d has", owner.pid,
		       other);
	assert_logged("Error (amdgpu_plugin): ", words);
	end_dump(-1);
	assert_int_equal(owner.process->paused, 0);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	leave_tree(&owner);
}

/* Taken for one more file of a process that is paused, it would have no image. */
static void a_file_that_cannot_be_told_from_others_fails_the_dump(void **state)
{
	struct member member;

	(void)state;
	join_tree(&member, make_process(), 1);
	start_dump();
	/* The first two find the tree's files. */
	failing_comparison = 3;
	assert_fails(dump_file(member.fds[0], 5));
	assert_logged("Error (amdgpu_plugin): ", strerror(EPERM));
	end_dump(-1);
	assert_int_equal(member.process->paused, 0);
	leave_tree(&member);
}

/* Pauses would wait for waves, so it must not come to one. */
static void a_driver_that_saves_no_waves_pauses_nobody(void **state)
{
	struct member members[3];

	(void)state;
	make_tree(members);
	unit_print("parameter-cwsr_enable", "0\n");
	start_dump();
	assert_fails(dump_file(members[0].fds[0], 5));
	assert_logged("Error (amdgpu_plugin): ", "cwsr_enable=1");
	end_dump(-1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(members[i].process->calls[KFD_PROCESS_INFO], 0);
		leave_tree(&members[i]);
	}
}

static void files_of_tracees_are_found_once_each(void **state)
{
	struct tree_files files;
	struct member members[2], child;
	int inherited[2];

	(void)state;
	join_tree(&members[0], make_process(), 2);
	join_tree(&members[1], make_process(), 1);
	/* One that has what others have, and a duplicate. */
	inherited[0] = members[0].fds[1];
	inherited[1] = dup(members[1].fds[0]);
	child = (struct member){ .pid = start_task(inherited, 2) };
	(void)close(inherited[1]);
	assert_int_equal(kfd_files_find(&(struct pid_list){ 0 }, members[0].fds[0], 300, &files),
			 0);
	assert_int_equal(files.count, 3);
	for (size_t i = 0; i < files.count; i++) {
		assert_true(files.list[i].fd >= 300);
		assert_int_equal(fcntl(files.list[i].fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(files.list[i].pid, members[i / 2].pid);
		assert_int_equal(kfd_files_same(files.list[i].fd, members[i / 2].fds[i % 2]), 1);
		assert_int_equal(kfd_files_same(files.list[i].fd, members[1 - i / 2].fds[0]), 0);
	}
	kfd_files_done(&files);
	leave_tree(&child);
	leave_tree(&members[0]);
	leave_tree(&members[1]);
}

/* Wherever they run out: a process that is overlooked would not be paused in time. */
static void without_descriptors_nothing_is_overlooked(void **state)
{
	struct rlimit old, few;
	struct tree_files files;
	struct member members[2];
	unsigned int failed = 0;
	int ret = -1;

	(void)state;
	join_tree(&members[0], make_process(), 1);
	join_tree(&members[1], make_process(), 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	for (few.rlim_cur = 3; ret && few.rlim_cur < 100; few.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		ret = kfd_files_find(&(struct pid_list){ 0 }, members[0].fds[0], 0, &files);
		failed += ret == -EMFILE;
		assert_true(!ret || ret == -EMFILE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(ret, 0);
	assert_true(failed > 0);
	assert_int_equal(files.count, 2);
	kfd_files_done(&files);
	leave_tree(&members[0]);
	leave_tree(&members[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_processes_are_paused_before_the_first_copy),
		TEST(images_are_of_the_processes_whose_files_they_are),
		TEST(a_dump_that_ends_early_leaves_all_running),
		TEST(more_files_and_inherited_ones_pause_nobody_twice),
		TEST(what_cannot_be_paused_early_waits_for_its_turn),
		TEST(a_process_that_nobody_asks_for_fails_the_dump),
		TEST(a_dump_that_fails_at_its_end_ends_criu_with_an_error),
		TEST(a_process_whose_counts_have_changed_is_not_paused_twice),
		TEST(a_process_that_changes_after_it_is_saved_fails_the_dump),
		TEST(who_is_frozen_but_not_dumped_is_let_alone),
		TEST(who_is_not_named_is_not_even_looked_at),
		TEST(who_is_paused_but_not_dumped_spoils_no_dump),
		TEST(a_file_that_another_process_would_open_again_fails_the_dump),
		TEST(a_file_that_cannot_be_told_from_others_fails_the_dump),
		TEST(a_driver_that_saves_no_waves_pauses_nobody),
		TEST(files_of_tracees_are_found_once_each),
		TEST(without_descriptors_nothing_is_overlooked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
