// SPDX-License-Identifier: GPL-2.0-only
/* Contents in a file that Mountpoint for Amazon S3 uploads: FUSE, without fallocate(). It ignores a
 * new size (setattr() in its fs.rs). A write of other bytes than the next ones aborts the upload
 * (OutOfOrderWrite in its upload.rs), and fdatasync() ends it. */
#include "drm_calls.h"

#include "content_set.h"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

/* The file, and what has arrived of it. */
static struct {
	ino_t inode;
	atomic_ullong arrived;
	atomic_bool ended;
} upload;

static ssize_t upload_bytes(int fd, const void *bytes, size_t size, off_t offset)
{
	ssize_t done;

	if (upload.ended || (uint64_t)offset != upload.arrived) {
		upload.ended = true;
		errno = EINVAL;
		return -1;
	}
	done = system_call(SYS_pwrite64, fd, bytes, size, offset);
	upload.arrived += done > 0 ? (uint64_t)done : 0;
	return done;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	return is_inode(fd, upload.inode) ? upload_bytes(fd, bytes, size, (off_t)upload.arrived)
					  : system_call(SYS_write, fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	return is_inode(fd, upload.inode) ? upload_bytes(fd, bytes, size, offset)
					  : system_call(SYS_pwrite64, fd, bytes, size, offset);
}

int ftruncate(int fd, off_t size)
{
	return is_inode(fd, upload.inode) ? 0 : (int)system_call(SYS_ftruncate, fd, size);
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
	if (!is_inode(fd, upload.inode))
		return (int)system_call(SYS_fallocate, fd, mode, offset, size);
	errno = EOPNOTSUPP;
	return -1;
}

int fstatfs(int fd, struct statfs *stat)
{
	int ret = (int)system_call(SYS_fstatfs, fd, stat);

	if (is_inode(fd, upload.inode))
		stat->f_type = FUSE_SUPER_MAGIC;
	return ret;
}

int fdatasync(int fd)
{
	upload.ended |= is_inode(fd, upload.inode);
	return (int)system_call(SYS_fdatasync, fd);
}

static struct set *make_uploaded_set(const uint64_t *sizes)
{
	memset(&upload, 0, sizeof(upload));
	return make_set_in_file(sizes, &upload.inode);
}

#define TEST(name) TEST_WITH(name, drm_calls_begin, drm_calls_end)

TEST(all_bytes_arrive_in_order)
{
	_cleanup_set_ struct set *set = make_uploaded_set(mixed);

	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_true(upload.ended);
	assert_int_equal(upload.arrived, image_size(set));
	assert_true(image_is_filled(set));
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
}

/* A hole would be bytes that do not arrive. */
TEST(zeros_arrive_too)
{
	_cleanup_set_ struct set *set =
		make_uploaded_set((const uint64_t[]){ 2 * MIB, 4 * MIB, PAGE, 0 });

	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_int_equal(upload.arrived, image_size(set));
}
