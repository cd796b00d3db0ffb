// SPDX-License-Identifier: GPL-2.0-only
/* One thread moves a file in blocks, first into the page cache, then to its end, then back. */
#include "selftest_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"

#define BLOCK_BYTES (4u << 20)
#define MIB         1048576.0

static double speed(uint64_t bytes, double begin)
{
	return (double)bytes / MIB / (now_seconds() - begin);
}

static int measure_writes(int fd, void *block, uint64_t bytes, struct selftest_storage *storage)
{
	const double begin = now_seconds();
	int ret = 0;

	for (uint64_t done = 0; !ret && done < bytes; done += BLOCK_BYTES)
		ret = pwrite_full(fd, block, BLOCK_BYTES, done);
	storage->write_mib_s = speed(bytes, begin);
	if (!ret)
		ret = fd_sync(fd);
	storage->flush_mib_s = speed(bytes, begin);
	return ret;
}

static int measure_reads(int fd, void *block, uint64_t bytes, struct selftest_storage *storage)
{
	double begin;
	int ret = 0;

	/* tmpfs keeps its pages. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	begin = now_seconds();
	for (uint64_t done = 0; !ret && done < bytes; done += BLOCK_BYTES)
		ret = pread_full(fd, block, BLOCK_BYTES, done);
	storage->read_mib_s = speed(bytes, begin);
	return ret;
}

int selftest_storage_measure(const char *dir, uint64_t bytes, struct selftest_storage *ret_storage)
{
	_cleanup_free_ void *block = malloc(BLOCK_BYTES);
	_cleanup_close_ int fd = fd_open(dir, O_TMPFILE | O_RDWR);
	struct selftest_storage storage;
	int ret;

	if (!block)
		return -ENOMEM;
	if (fd < 0)
		return fd;
	/* File systems that compress find nothing to do. */
	for (size_t i = 0; i < BLOCK_BYTES / sizeof(uint64_t); i++)
		((uint64_t *)block)[i] = (i + 1) * 0x9e3779b97f4a7c15ull ^ i << 29;
	bytes = bytes / BLOCK_BYTES * BLOCK_BYTES;
	ret = measure_writes(fd, block, bytes, &storage);
	if (!ret)
		ret = measure_reads(fd, block, bytes, &storage);
	if (!ret)
		*ret_storage = storage;
	return ret;
}
