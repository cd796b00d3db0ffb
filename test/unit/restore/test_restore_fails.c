// SPDX-License-Identifier: GPL-2.0-only
/* Restores that fail: the log has one error, and a half-restored task never runs. */
#include "restore_task.h"

#include <sys/wait.h>

/* CRIU's function. The plugin's last line comes after it. Each call sends a signal to a pid that
 * may belong to another process after the first call. */
int stop_cgroupd(void);

static unsigned int cgroupd_stops;

int stop_cgroupd(void)
{
	cgroupd_stops++;
	unit_forget_lines();
	return 0;
}

/* In seconds: a test that blocks fails after this time. */
#define TIME_LIMIT 20

/* Expects one error line with @words, which the end of the restore repeats, and no RESTORE. */
static void assert_refused(const char *words)
{
	write_image(5);
	unit_forget_lines();
	start_restore();
	assert_fails(restore_file(5));
	assert_logged("Error (amdgpu_plugin): ", words);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	assert_int_equal(calls(KFD_RESTORE), 0);
	cgroupd_stops = 0;
	end_restore(-1);
	assert_int_equal(cgroupd_stops, 1);
	assert_logged("Error (amdgpu_plugin): restore failed: ", words);
	assert_int_equal(unit_count_errors(), 1);
}

TEST(an_image_of_another_process_is_refused)
{
	make_image();
	image->pid++;
	assert_refused("process");
}

/* The damaged image may hold the state of the process. */
TEST(a_file_without_state_beside_a_damaged_image_is_refused)
{
	const CriuKfd plain = CRIU_KFD__INIT;

	assert_int_equal(image_write_kfd(6, &plain), 0);
	unit_print("amdgpu-kfd-5.img", "damaged");
	start_restore();
	assert_fails(restore_file(6));
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-5.img");
	end_restore(-1);
}

TEST(gpus_too_many_to_see_are_refused_in_words)
{
	make_image();
	give_private_data();
	/* The last object is an SVM range, which has as many bytes as an event here. */
	image->priv_data.data[image->priv_data.len - 64] = 2;
	kernel.machine = "eight";
	assert_refused("device cgroup");
}

TEST(a_machine_without_driver_is_refused)
{
	make_image();
	kernel.machine = NULL;
	assert_refused("this machine has no KFD driver");
}

TEST(device_names_of_other_devices_are_refused)
{
	make_image();
	kernel.misnames_render_nodes = true;
	assert_refused("map: ");
	kernel.misnames_render_nodes = false;
	kernel.misnames_kfd = true;
	assert_refused("/dev/kfd: not the device");
}

/* In the mount namespace of a task, the name may be anything. */
TEST(a_pipe_in_sysfs_does_not_block)
{
	make_image();
	assert_int_equal(unlink(unit_path("sysfs-dev")), 0);
	assert_int_equal(mkfifo(unit_path("sysfs-dev"), 0600), 0);
	(void)alarm(TIME_LIMIT);
	assert_refused("cannot recognise files of KFD");
	(void)alarm(0);
}

TEST(an_old_driver_is_refused)
{
	make_image();
	kernel.kfd_minor = 7;
	assert_refused("1.8");
}

TEST(a_second_try_after_a_refusal_is_refused_too)
{
	make_image();
	image->device_entries[1]->simd_count++;
	write_image(5);
	start_restore();
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(restore_file(5), -ENODEV);
	assert_int_equal(unit_count_lines("no present GPU fits"), 3);
	assert_int_equal(resume(getpid()), -ENOTSUP);
	end_restore(-1);
}

/* A pages file of only holes has a length, too. */
TEST(a_pages_file_of_another_size_than_its_bos_is_refused)
{
	static const uint64_t lengths[] = { 0, 0x1fff, 0x2001, 0x3000, UINT64_MAX };
	uint64_t length;

	make_image();
	add_image_bo(KFD_BO_VRAM, 0x800000, 0x1000, 0x100000000);
	add_image_bo(KFD_BO_GTT, 0xa00000, 0x1000, 0x200000000);
	assert_refused("amdgpu-pages-5-beef.img: cannot open");
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		length = lengths[i];
		unit_write("amdgpu-pages-5-beef.img", &length, sizeof(length));
		if (length < INT64_MAX)
			assert_int_equal(
				truncate(unit_path("amdgpu-pages-5-beef.img"), (off_t)(8 + length)),
				0);
		assert_refused("amdgpu-pages-5-beef.img: damaged");
	}
}

TEST(a_task_is_killed_if_a_mapping_cannot_be_restored)
{
	uint64_t offset;
	int fd, mapped;

	make_image();
	fd = restore_image(5);
	assert_true(fd >= 0);
	assert_int_equal(
		update_mapping("/dev/kfd", 0x9000, 3ULL << 62 | 0x4444ULL << 46, &offset, &mapped),
		-EINVAL);
	assert_true(resume(getpid()) < 0);
	assert_int_equal(kernel.killed, getpid());
	assert_int_equal(calls(KFD_RESUME), 0);
	(void)close(fd);
	end_restore(-1);
}

TEST(a_task_is_killed_if_resume_fails)
{
	_cleanup_close_ int fd = -1;

	make_image();
	fd = restore_image(5);
	kernel.fail_op = KFD_RESUME;
	kernel.fail_errno = EINVAL;
	kernel.fail_count = 1;
	unit_forget_lines();
	assert_int_equal(resume(getpid()), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "resume");
	assert_int_equal(kernel.killed, getpid());
	assert_int_equal(resume(getpid()), -EINVAL);
	assert_int_equal(unit_count_lines("resume"), 1);
	cgroupd_stops = 0;
	end_restore(-1);
	/* CRIU has done it before this hook. */
	assert_int_equal(cgroupd_stops, 0);
	assert_logged("Error (amdgpu_plugin): restore failed: ", "resume");
}

TEST(a_task_that_has_ended_fails_the_restore)
{
	_cleanup_close_ int fd = -1;

	make_image();
	fd = restore_image(5);
	assert_int_equal(unlink(unit_path("self-status")), 0);
	assert_int_equal(resume(getpid()), -ESRCH);
	assert_logged("Error (amdgpu_plugin): ", "0 of 1 processes with GPU state");
	assert_int_equal(kernel.killed, getpid());
	assert_int_equal(calls(KFD_RESUME), 0);
	end_restore(-1);
}
