// SPDX-License-Identifier: GPL-2.0-only
/* The directory of a selftest. Its callers write the images. One thread measures the storage: it
 * moves a file in blocks, first into the page cache, then to its end, then back. */
#include "selftest_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"

#define DIRECTORIES_OPEN 8
#define BLOCK_BYTES      (4u << 20)
#define MIB              1048576.0

int selftest_dir_make(const char *parent, char path[PATH_MAX])
{
	char real[PATH_MAX];

	if (!realpath(parent, real))
		return -errno;
	if (snprintf(path, PATH_MAX, "%s/criu-amdgpu-selftest-XXXXXX", real) >= PATH_MAX)
		return -ENAMETOOLONG;
	return mkdtemp(path) ? 0 : -errno;
}

static int remove_one(const char *path, const struct stat *file, int flag, struct FTW *place)
{
	(void)file;
	(void)flag;
	(void)place;
	(void)remove(path);
	return 0;
}

void selftest_dir_remove(const char *path)
{
	(void)nftw(path, remove_one, DIRECTORIES_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

uint64_t selftest_dir_count_images(const char *path)
{
	_cleanup_closedir_ DIR *stream = opendir(path);
	struct dirent *entry;
	struct stat file;
	uint64_t bytes = 0;
	int error = 0;

	while (stream && (entry = next_entry(stream, &error))) {
		if (strstr(entry->d_name, ".img") &&
		    !fstatat(dirfd(stream), entry->d_name, &file, 0) && S_ISREG(file.st_mode))
			bytes += (uint64_t)file.st_size;
	}
	return bytes;
}

static double speed(uint64_t bytes, double begin)
{
	return (double)bytes / MIB / (now_seconds() - begin);
}

static int measure_writes(int fd, void *block, uint64_t bytes, struct selftest_dir_speed *measured)
{
	const double begin = now_seconds();
	int ret = 0;

	for (uint64_t done = 0; !ret && done < bytes; done += BLOCK_BYTES)
		ret = pwrite_full(fd, block, BLOCK_BYTES, done);
	measured->write_mib_s = speed(bytes, begin);
	if (!ret)
		ret = fd_sync(fd);
	measured->flush_mib_s = speed(bytes, begin);
	return ret;
}

static int measure_reads(int fd, void *block, uint64_t bytes, struct selftest_dir_speed *measured)
{
	double begin;
	int ret = 0;

	/* tmpfs keeps its pages. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	begin = now_seconds();
	for (uint64_t done = 0; !ret && done < bytes; done += BLOCK_BYTES)
		ret = pread_full(fd, block, BLOCK_BYTES, done);
	measured->read_mib_s = speed(bytes, begin);
	return ret;
}

int selftest_dir_measure(const char *dir, uint64_t bytes, struct selftest_dir_speed *ret_speed)
{
	_cleanup_free_ void *block = malloc(BLOCK_BYTES);
	_cleanup_close_ int fd = fd_open(dir, O_TMPFILE | O_RDWR);
	struct selftest_dir_speed measured;
	int ret;

	if (!block)
		return -ENOMEM;
	if (fd < 0)
		return fd;
	/* File systems that compress find nothing to do. */
	for (size_t i = 0; i < BLOCK_BYTES / sizeof(uint64_t); i++)
		((uint64_t *)block)[i] = (i + 1) * 0x9e3779b97f4a7c15ull ^ i << 29;
	bytes = bytes / BLOCK_BYTES * BLOCK_BYTES;
	ret = measure_writes(fd, block, bytes, &measured);
	if (!ret)
		ret = measure_reads(fd, block, bytes, &measured);
	if (!ret)
		*ret_speed = measured;
	return ret;
}
