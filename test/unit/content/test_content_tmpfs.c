// SPDX-License-Identifier: GPL-2.0-only
/* Tests contents in files of tmpfs, which are written in two ways. */
#include "drm_calls.h"

#include "content_set.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Not in the headers of older systems. */
#define POPULATE_WRITE 23

static struct {
	atomic_uint populated;
	atomic_uint written;
	int populate_error;
} calls;

int madvise(void *memory, size_t size, int advice)
{
	if (advice == POPULATE_WRITE) {
		calls.populated++;
		errno = calls.populate_error;
		if (calls.populate_error)
			return -1;
	}
	return (int)system_call(SYS_madvise, memory, size, advice);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	calls.written++;
	return system_call(SYS_pwrite64, fd, bytes, size, offset);
}

static int begin(void **state)
{
	memset(&calls, 0, sizeof(calls));
	return drm_calls_begin(state);
}

/* More ranges than a trial has. */
static const uint64_t many_ranges[] = { 5 * MIB, PAGE, 12 * MIB + PAGE, 3 * PAGE, 0 };

static void both_ways_are_tried(void **state)
{
	struct set *set = make_set(many_ranges);

	(void)state;
	fill(set);
	calls.written = 0;
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_true(calls.populated >= 16);
	assert_true(calls.written >= 16);
	assert_true(image_is_filled(set));
	free_set(set);
}

static void a_file_that_cannot_be_mapped_is_written(void **state)
{
	static const int errors[] = { EINVAL, EFAULT, ENOMEM };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct set *set = make_set(many_ranges);

		fill(set);
		calls.populated = 0;
		calls.populate_error = errors[i];
		assert_int_equal(content_save(&set->job, 1, &settings), 0);
		/* At most once in each thread. */
		assert_in_range(calls.populated, 1, 8);
		assert_true(image_is_filled(set));
		free_set(set);
	}
}

/* Mounts a tmpfs of @size bytes at the directory of the tests, for this process only. */
static void mount_tmpfs(const char *size)
{
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mkdir(unit_path("tmpfs"), 0700), 0);
	assert_int_equal(mount("tmpfs", unit_path("tmpfs"), "tmpfs", 0, size), 0);
}

/* A store to a mapping of a full tmpfs would end the process with SIGBUS. */
static void a_full_tmpfs_is_an_error(void **state)
{
	static const char *const sizes[] = { "size=1M", "size=3M", "size=5M", "size=12M" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct set *set = make_set(many_ranges);

		print_message("case %s\n", sizes[i]);
		mount_tmpfs(sizes[i]);
		(void)close(set->job.image_fd);
		set->job.image_fd =
			open(unit_path("tmpfs/image"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		assert_true(set->job.image_fd >= 0);
		fill(set);
		unit_forget_lines();
		assert_int_equal(content_save(&set->job, 1, &settings), -ENOSPC);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "write to the image",
			      strerror(ENOSPC));
		free_set(set);
		assert_int_equal(umount(unit_path("tmpfs")), 0);
		assert_int_equal(rmdir(unit_path("tmpfs")), 0);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, drm_calls_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_ways_are_tried),
		TEST(a_file_that_cannot_be_mapped_is_written),
		TEST(a_full_tmpfs_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
