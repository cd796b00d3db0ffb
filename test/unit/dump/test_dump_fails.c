// SPDX-License-Identifier: GPL-2.0-only
/* Dumps that fail: the process continues, one line has the reason, and no state image is left. */
#include "dump_task.h"

#include <sys/resource.h>

static bool limits_are_fixed;

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	if (!limits_are_fixed)
		return prlimit(0, resource, limit, NULL);
	errno = EPERM;
	return -1;
}

/* The kernel reports that there are too few descriptors. The plugin does not log another error. */
TEST(a_limit_that_cannot_be_raised_is_only_a_warning)
{
	struct fake_process *process = make_process();
	struct rlimit before;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, before.rlim_max }), 0);
	limits_are_fixed = true;
	kernel.fail_op = KFD_CHECKPOINT;
	kernel.fail_errno = EMFILE;
	kernel.fail_count = 1;
	assert_dump_fails(process, ": cannot checkpoint, CRIU has too few descriptors");
	assert_logged("Warn  (amdgpu_plugin): ", "cannot raise RLIMIT_NOFILE", strerror(EPERM));
	fd = open_kfd_of(process);
	dump_one(fd, 5);
	(void)close(fd);
	limits_are_fixed = false;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void set_limit(rlim_t limit, rlim_t hard_limit)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ limit, hard_limit }), 0);
}

/* Sessions and services often have a low soft limit, and CRIU without root does not raise it. */
TEST(a_low_limit_of_descriptors_is_raised_for_the_dump)
{
	struct fake_process *process = make_process();
	struct rlimit before, after;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	set_limit(256, before.rlim_max);
	dump_process(process);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_int_equal(after.rlim_cur, 256);
	set_limit(before.rlim_cur, before.rlim_max);
}

TEST(a_limit_of_descriptors_that_is_too_low_is_named)
{
	struct fake_process *process = make_process();
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	set_limit(512, before.rlim_max);
	limits_are_fixed = true;
	assert_dump_fails(process, "raise the hard limit of CRIU's open files");
	limits_are_fixed = false;
	set_limit(before.rlim_cur, before.rlim_max);
}

static struct fake_process *make_process_with_bos(uint64_t number, uint64_t count)
{
	struct fake_process *process = make_process();

	for (uint64_t i = number << 24; i < (number << 24) + (count << 12); i += 1 << 12)
		add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000 + i, 0x1000, 0x100000000 + i);
	return process;
}

/* The dma-bufs of one process fit, those of both do not. The second process must not have changed
 * when its dma-bufs are opened again. */
TEST(dmabufs_of_all_processes_may_exceed_the_limit)
{
	struct fake_process *processes[] = { make_process_with_bos(0, 400),
					     move_to_other_task(make_process_with_bos(1, 400)) };
	int fds[] = { open_kfd_of(processes[0]), open_kfd_of(processes[1]) };
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 620, before.rlim_max }), 0);
	limits_are_fixed = true;
	kernel.fail_op = KFD_CHECKPOINT;
	kernel.fail_errno = EINVAL;
	for (unsigned int changes = 0; changes < 2; changes++) {
		begin_dump(fds[0], 5);
		assert_logged("amdgpu_plugin: process", "too few descriptors for the dma-bufs");
		kernel.fail_count = changes;
		assert_int_equal(dump_file(fds[1], 6), changes ? -EAGAIN : 0);
		end_dump(changes ? -1 : 0);
		assert_int_equal(unit_exists("amdgpu-kfd-5.img"), !changes);
		assert_int_equal(unit_exists("amdgpu-kfd-6.img"), !changes);
		assert_int_equal(processes[0]->calls[KFD_CHECKPOINT], 2 + 2 * changes);
		assert_int_equal(processes[1]->calls[KFD_CHECKPOINT], 2 + changes);
	}
	assert_logged("Error (amdgpu_plugin): ", "has changed", "dump again");
	for (int i = 0; i < 2; i++)
		(void)close(fds[i]);
	limits_are_fixed = false;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Kernels before 6.12 give two GPUs one gpu_id, if their hashes are equal. */
TEST(an_image_that_a_restore_would_refuse_is_not_written)
{
	struct fake_process *process = add_process(tracee);

	add_device(process, GPU_B, GPU_A);
	add_device(process, GPU_B, GPU_B);
	add_bo(process, GPU_B, KFD_BO_USERPTR, 0x700000, 0x123000, 0);
	assert_dump_fails(process, "kfd 5: GPU 0xdfd4 is in the image twice");
}

/* The kernel answers so if the process has changed between two calls. */
TEST(counts_that_keep_changing_fail_the_dump)
{
	struct fake_process *process = make_process();

	kernel.fail_op = KFD_CHECKPOINT;
	kernel.fail_errno = EINVAL;
	kernel.fail_count = 2;
	assert_dump_fails(process, "changing");
}

TEST(a_bo_on_a_gpu_that_the_process_does_not_have_fails_the_dump)
{
	struct fake_process *process = make_process();

	add_bo(process, 0x4444, KFD_BO_DOORBELL, 0, 4096, 0);
	assert_dump_fails(process, "BO 2");
}

TEST(a_gpu_that_the_topology_lacks_fails_the_dump)
{
	struct fake_process *process = make_process();

	kernel.machine = "one";
	/* The field of amdgpu in fdinfo then identifies the file. */
	unit_print("fdinfo-129", "pos:\t0\npasid:\t32770\n");
	assert_dump_fails(process, "0xdfd4");
}

TEST(a_driver_without_rings_for_commands_is_named)
{
	struct fake_process *process = make_process();

	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000000);
	gpu.has_no_rings = true;
	assert_dump_fails(process, "GPU 0xdfd4");
	assert_logged("Error (amdgpu_plugin): ", "SDMA rings", "user_queue");
}

TEST(a_full_disk_fails_the_dump)
{
	static const uint64_t room[] = { 0, 4, 8, 20, 500 };

	for (size_t i = 0; i < ARRAY_SIZE(room); i++) {
		struct fake_process *process;
		int fd, ret;

		print_message("case %zu\n", i);
		forget_processes();
		process = make_process();
		fd = open_kfd_of(process);
		start_dump();
		unit_limit_files(room[i]);
		ret = dump_file(fd, 5);
		unit_unlimit_files();
		assert_int_equal(ret, -EFBIG);
		assert_logged("Error (amdgpu_plugin): ", "image amdgpu-");
		assert_false(unit_exists("amdgpu-kfd-5.img"));
		end_dump(-1);
		assert_int_equal(process->paused, 0);
		(void)close(fd);
	}
}

/* Before anything is paused. */
TEST(a_gpu_that_cannot_be_watched_fails_the_dump)
{
	struct fake_process *process = make_process();

	kernel.context_errno = ENOMEM;
	assert_dump_fails(process, "GPU 0x07cd: cannot watch it");
	kernel.context_errno = 0;
	kernel.hides_render_nodes = true;
	assert_dump_fails(process, "GPU 0x07cd: cannot watch it");
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
}

/* The task has the first two GPUs open. */
TEST(a_gpu_of_others_may_be_in_reset)
{
	_cleanup_close_ int fd = open_kfd_of(make_process());

	kernel.num_open_renders = 2;
	kernel.context_flags = 0x20;
	kernel.context_minor = 130;
	dump_one(fd, 5);
	kernel.context_minor = 129;
	start_dump();
	assert_fails(dump_file(fd, 5));
	assert_logged("Error (amdgpu_plugin): ", "is in reset");
	end_dump(-1);
}

TEST(an_inventory_that_fails_is_found_before_anything_is_paused)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int fd = open_kfd_of(process);

	unit_criu()->note_result = -1;
	start_dump();
	assert_true(dump_file(fd, 5) < 0);
	assert_logged("Error (amdgpu_plugin): ", "inventory");
	end_dump(-1);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
}
