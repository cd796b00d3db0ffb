// SPDX-License-Identifier: GPL-2.0-only
/* A restore directly after a dump that ended the job: the kernel frees the old VRAM later. */
#include "restore_task.h"

#include <time.h>

#include "memory/restore_shared.h"
#include "memory/vram.h"

#define BO_SIZE  0x400000ULL
#define NEVER    0
#define MAX_NAPS 1000

/* Waits of the plugin, and the wait after which the old process's VRAM is free. */
static struct {
	unsigned int naps, frees_at;
} time_passes;

int nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	assert_true(pause->tv_nsec > 0);
	if (++time_passes.naps == time_passes.frees_at)
		kernel.free_vram = 2 * BO_SIZE;
	return 0;
}

static void make_job(unsigned int frees_at)
{
	make_image();
	add_image_bo(KFD_BO_VRAM, 0x800000, BO_SIZE, 0x100000000);
	write_image(5);
	write_pages("amdgpu-pages-5-beef.img", BO_SIZE);
	kernel.free_vram = BO_SIZE - 1;
	time_passes.naps = 0;
	time_passes.frees_at = frees_at;
	start_restore();
}

TEST(restore_waits_for_the_vram_of_an_ended_process)
{
	_cleanup_close_ int fd = -1;

	make_job(7);
	fd = restore_file(5);
	assert_true(fd >= 0);
	assert_int_equal(time_passes.naps, 7);
	assert_int_equal(calls(KFD_RESTORE), 1);
	assert_int_equal(unit_count_lines("3 MiB of VRAM are free, and the images need 4 MiB"), 1);
	assert_logged("kfd 5: GPU 0xabf5: has enough VRAM now");
	end_restore(0);
}

TEST(restore_waits_if_linux_6_1_counts_more_vram_than_there_is)
{
	int fd;

	make_job(7);
	kernel.free_vram = -BO_SIZE;
	fd = restore_file(5);
	assert_true(fd >= 0);
	assert_int_equal(time_passes.naps, 7);
	assert_int_equal(unit_count_lines("0 MiB of VRAM are free, and the images need 4 MiB"), 1);
	(void)close(fd);
	end_restore(0);
}

TEST(the_wait_ends_and_the_driver_decides)
{
	make_job(NEVER);
	assert_int_equal(restore_file(5), -ENOMEM);
	assert_int_equal(time_passes.naps, MAX_NAPS);
	assert_logged("Warn  (amdgpu_plugin): ", "still only 3 MiB of VRAM are free");
	assert_logged("Error (amdgpu_plugin): ", "most likely another process has the memory");
	assert_int_equal(unit_count_errors(), 1);
	end_restore(-1);
}

TEST(enough_vram_and_old_kernels_need_no_wait)
{
	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_close_ int fd = -1;

		make_job(NEVER);
		kernel.hides_free_vram = i;
		kernel.free_vram = BO_SIZE;
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		fd = restore_file(5);
		assert_true(fd >= 0);
		assert_int_equal(time_passes.naps, 0);
		assert_int_equal(unit_count_lines("VRAM"), 0);
		end_restore(0);
		forget_image();
	}
}

/* Otherwise both would take the same free memory for theirs, and one would fail. */
TEST(two_tasks_need_room_for_both)
{
	struct kfd_device_bucket device = { .user_gpu_id = USER_ID, .actual_gpu_id = NEW_ID };
	struct kfd_bo_bucket bos[] = {
		{ .gpu_id = USER_ID, .size = BO_SIZE, .alloc_flags = KFD_BO_VRAM },
		{ .gpu_id = USER_ID, .size = BO_SIZE, .alloc_flags = KFD_BO_GTT },
	};
	const struct kfd_state needs = {
		.devices = &device, .num_devices = 1, .bos = bos, .num_bos = ARRAY_SIZE(bos)
	};
	const struct restored_task task = { .kfd_id = 5 };
	struct restore_shared *shared;
	_cleanup_close_ int fd = open_device("kfd-0", O_RDWR);

	time_passes.naps = 0;
	time_passes.frees_at = 3;
	kernel.free_vram = BO_SIZE;
	assert_int_equal(restore_shared_new(&shared), 0);
	vram_await(shared, &task, fd, &needs);
	assert_int_equal(time_passes.naps, 0);
	vram_await(shared, &task, fd, &needs);
	assert_int_equal(time_passes.naps, 3);
	vram_end_claim(shared, &task, &needs);
	vram_end_claim(shared, &task, &needs);
	assert_int_equal(shared->claimed_vram[NEW_ID], 0);
	restore_shared_free(shared);
}
