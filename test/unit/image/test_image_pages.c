// SPDX-License-Identifier: GPL-2.0-only
/* Tests pages files: their creation, their length, and damage. */
#include "foreign_image.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include "image/image.h"

UNIT_TEST(a_new_pages_file_is_empty_and_closed_on_exec)
{
	size_t size;
	_cleanup_free_ uint8_t *bytes = NULL;
	int fd = -1;

	assert_int_equal(image_create_pages(5, 0xbeef, 0x0102030405060708, &fd), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(image_close_pages(5, 0xbeef, &fd), 0);
	assert_int_equal(fd, -1);
	bytes = unit_read("amdgpu-pages-5-beef.img", &size);
	assert_int_equal(size, 1);
	assert_memory_equal(bytes, "x", 1);
}

UNIT_TEST(a_full_disk_is_an_error_before_the_dump)
{
	assert_int_equal(image_check_room(4096, 4096), 0);
	unit_forget_lines();
	assert_int_equal(image_check_room(UINT64_MAX / 2, 4096), -ENOSPC);
	assert_logged("Error (amdgpu_plugin): ", "MiB are free", strerror(ENOSPC));
}

/* The sizes of the file system, where they are not those of the machine. */
static const struct statvfs *sizes;

int __real_fstatvfs(int fd, struct statvfs *stat);
int __wrap_fstatvfs(int fd, struct statvfs *stat);
int __wrap_fstatvfs(int fd, struct statvfs *stat)
{
	int ret = __real_fstatvfs(fd, stat);

	if (sizes)
		*stat = *sizes;
	return ret;
}

UNIT_TEST(root_has_the_room_that_is_reserved)
{
	struct statvfs reserved = { .f_blocks = 100, .f_bfree = 10, .f_frsize = 4096 };
	struct image_room room;

	sizes = &reserved;
	assert_int_equal(image_find_room(&room), 0);
	assert_int_equal(room.bytes, 40960);
	assert_int_equal(seteuid(1), 0);
	assert_int_equal(image_find_room(&room), 0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(room.bytes, 0);
	sizes = NULL;
}

UNIT_TEST(a_file_system_without_sizes_is_not_full)
{
	struct statvfs unknown = { .f_frsize = 4096 };
	struct image_room room;

	sizes = &unknown;
	assert_int_equal(image_find_room(&room), 0);
	assert_true(room.bytes == UINT64_MAX);
	assert_int_equal(image_check_room(UINT64_MAX, 4096), 0);
	sizes = NULL;
}

UNIT_TEST(a_limit_of_file_sizes_is_an_error_before_the_dump)
{
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1 << 20, before.rlim_max }), 0);
	assert_int_equal(image_check_room(2 << 20, (1 << 20) - IMAGE_HEADER_SIZE), 0);
	assert_int_equal(image_check_room(2 << 20, 1 << 20), -EFBIG);
	assert_logged("Error (amdgpu_plugin): ", "ulimit -f", strerror(EFBIG));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

UNIT_TEST(a_gpu_without_contents_has_a_file_of_length_0)
{
	size_t size;
	_cleanup_free_ uint8_t *bytes = NULL;
	int fd = -1;

	assert_int_equal(image_create_pages(5, 1, 0, &fd), 0);
	assert_int_equal(image_close_pages(5, 1, &fd), 0);
	bytes = unit_read("amdgpu-pages-5-0001.img", &size);
	assert_int_equal(size, 8);
}

UNIT_TEST(the_length_of_a_pages_file_must_be_that_of_the_bos)
{
	static const struct {
		size_t in_file;
		uint64_t wanted;
		int ret;
	} cases[] = {
		{ 4096, 4096, 0 },
		{ 4096, 8192, -EINVAL },
		{ 8192, 4096, -EINVAL },
		{ 0, 4096, -EINVAL },
		/* No contents: the file is not opened. */
		{ 4096, 0, 0 },
	};
	static const char page[8192];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = -2;

		unit_forget_lines();
		write_framed("amdgpu-pages-5-beef.img", page, cases[i].in_file);
		assert_int_equal(image_open_pages(5, 0xbeef, cases[i].wanted, &fd), cases[i].ret);
		assert_int_equal(
			unit_logged("Error (amdgpu_plugin): ", "amdgpu-pages-5-beef.img", NULL),
			cases[i].ret != 0);
		if (!cases[i].ret && cases[i].wanted)
			assert_int_equal(close(fd), 0);
		else
			assert_int_equal(fd, cases[i].ret ? -2 : -1);
	}
}

UNIT_TEST(missing_or_damaged_pages_are_refused_by_name)
{
	int fd;

	assert_int_equal(image_open_pages(5, 0xbeef, 4096, &fd), -ENOENT);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-pages-5-beef.img");
	unit_forget_lines();
	unit_write("amdgpu-pages-5-beef.img", "\0\x10\0\0\0\0\0\0short", 13);
	assert_true(image_open_pages(5, 0xbeef, 4096, &fd) < 0);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-pages-5-beef.img");
}
