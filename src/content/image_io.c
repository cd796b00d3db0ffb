// SPDX-License-Identifier: GPL-2.0-only
/* Moves ranges of an image between memory and a file or stream. Which bytes these are is the
 * content unit's business, and what the file is called the image unit's. */
#include "content/image_io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

/* A hole is at least that long: shorter ones cost more calls than they save bytes. */
#define HOLE_SIZE (256u << 10)

/* How many places of a file tell whether it is in the page cache. */
#define CACHE_PROBES 16

/* What stat counts in. */
#define STAT_BLOCK 512u

static uint64_t round_up(uint64_t size)
{
	return (size + CONTENT_ALIGNMENT - 1) / CONTENT_ALIGNMENT * CONTENT_ALIGNMENT;
}

static uint64_t round_down(uint64_t size)
{
	return size / CONTENT_ALIGNMENT * CONTENT_ALIGNMENT;
}

static void init(struct image_io *storage, int fd, bool streamed, uint64_t size)
{
	*storage = (struct image_io){ .fd = fd, .streamed = streamed, .size = size };
	(void)pthread_mutex_init(&storage->lock, NULL);
}

static bool set_direct(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/* For files that live in memory, to reserve room is to fill it with zeros, and there
 * is nothing to bypass. */
static bool is_in_memory(int fd)
{
	struct statfs stat;

	return fstatfs(fd, &stat) == 0 && stat.f_type == TMPFS_MAGIC;
}

int image_io_begin_save(struct image_io *storage, int fd, bool streamed, bool skip_zeros,
			uint64_t size)
{
	init(storage, fd, streamed, size);
	storage->skip_zeros = skip_zeros;
	if (streamed)
		return 0;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	if (is_in_memory(fd))
		return 0;
	storage->reserved = fallocate(fd, 0, 0, (off_t)size) == 0;
	if (!storage->reserved && errno == ENOSPC)
		return -ENOSPC;
	storage->direct = set_direct(fd, true);
	return 0;
}

/* The file system has allowed direct access and then refused it. Who does not know yet that it is
 * off moves whole blocks once more, which is no error; who would take it for off before it is would
 * be refused. */
static int go_on_buffered(struct image_io *storage)
{
	if (!set_direct(storage->fd, false))
		return -EINVAL;
	__atomic_store_n(&storage->direct, false, __ATOMIC_RELEASE);
	return 0;
}

static int write_run(struct image_io *storage, char *memory, uint64_t offset, uint64_t size)
{
	bool direct = __atomic_load_n(&storage->direct, __ATOMIC_ACQUIRE);
	uint64_t length = direct ? round_up(size) : size;
	int ret;

	memset(memory + size, 0, length - size);
	ret = pwrite_full(storage->fd, memory, length, offset);
	if (ret != -EINVAL || !direct)
		return ret;
	ret = go_on_buffered(storage);
	return ret < 0 ? ret : pwrite_full(storage->fd, memory, size, offset);
}

static bool is_zero(const char *memory, uint64_t size)
{
	static const char zeros[16];

	if (size <= sizeof(zeros))
		return !memcmp(memory, zeros, size);
	return !memcmp(memory, zeros, sizeof(zeros)) &&
	       !memcmp(memory, memory + sizeof(zeros), size - sizeof(zeros));
}

/* The file is new, and nothing has been written there. */
static int skip_run(struct image_io *storage, char *memory, uint64_t offset, uint64_t size)
{
	if (storage->reserved && fallocate(storage->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					   (off_t)offset, (off_t)size) < 0)
		return write_run(storage, memory, offset, size);
	return 0;
}

int image_io_write(struct image_io *storage, char *memory, uint64_t offset, uint64_t size)
{
	uint64_t begin, end;
	int ret = 0;

	if (storage->streamed)
		return write_full(storage->fd, memory, size);
	if (!storage->skip_zeros)
		return write_run(storage, memory, offset, size);
	for (begin = 0; !ret && begin < size; begin = end) {
		bool zero = false;

		for (end = begin; end < size; end += HOLE_SIZE) {
			bool next = is_zero(memory + end,
					    size - end < HOLE_SIZE ? size - end : HOLE_SIZE);

			if (end == begin)
				zero = next;
			else if (next != zero)
				break;
		}
		if (end > size)
			end = size;
		ret = (zero ? skip_run : write_run)(storage, memory + begin, offset + begin,
						    end - begin);
	}
	return ret;
}

int image_io_end_save(struct image_io *storage)
{
	if (storage->streamed)
		return 0;
	if (ftruncate(storage->fd, (off_t)storage->size) < 0)
		return -errno;
	return fd_sync(storage->fd);
}

/* What is in the page cache already is read from there. */
static bool is_cached(int fd, uint64_t size)
{
	unsigned int hits = 0;
	char byte;

	for (unsigned int i = 0; i < CACHE_PROBES; i++) {
		struct iovec place = { &byte, sizeof(byte) };

		hits += preadv2(fd, &place, 1, (off_t)(size / CACHE_PROBES * i), RWF_NOWAIT) == 1;
	}
	return hits > CACHE_PROBES / 2;
}

int image_io_begin_load(struct image_io *storage, int fd, bool streamed, uint64_t size)
{
	struct stat stat;

	init(storage, fd, streamed, size);
	if (streamed)
		return 0;
	if (fstat(fd, &stat) < 0)
		return -errno;
	/* Past the end of a file all looks like a hole. */
	if ((uint64_t)stat.st_size < size)
		return -EIO;
	storage->sparse = (uint64_t)stat.st_blocks * STAT_BLOCK < size;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	storage->direct = !is_cached(fd, size) && set_direct(fd, true);
	return 0;
}

/* Bytes that are no hole. */
static int read_run(struct image_io *storage, char *memory, uint64_t offset, uint64_t size)
{
	bool direct = __atomic_load_n(&storage->direct, __ATOMIC_ACQUIRE);
	int ret;

	/* Past the end there is nothing to be had, but lengths are whole blocks. */
	ret = pread_up_to(storage->fd, memory, size, direct ? round_up(size) : size, offset);
	if (ret != -EINVAL || !direct)
		return ret;
	ret = go_on_buffered(storage);
	return ret < 0 ? ret : pread_full(storage->fd, memory, size, offset);
}

/* All of the file from @at on that is data, or all that is none. Holes may begin and end within our
 * blocks: a block with any data is data. Where files cannot say, all is data. */
static struct extent find_extent(const struct image_io *storage, uint64_t at)
{
	off_t data = lseek(storage->fd, (off_t)at, SEEK_DATA);
	bool is_hole = data < 0 ? errno == ENXIO : round_down((uint64_t)data) > at;
	off_t end = is_hole ? data : lseek(storage->fd, data < 0 ? (off_t)at : data, SEEK_HOLE);
	uint64_t to = is_hole ? round_down((uint64_t)end) : round_up((uint64_t)end);

	if (end < 0)
		return (struct extent){ at, UINT64_MAX, is_hole };
	/* Whatever the file system answers, reading goes on. */
	if (to <= at)
		return (struct extent){ at, UINT64_MAX, false };
	return (struct extent){ at, to, is_hole };
}

/* Some file systems look at every page to answer, so they are not asked twice
 * about the same bytes. */
static struct extent extent_at(struct image_io *storage, uint64_t at)
{
	struct extent extent;

	(void)pthread_mutex_lock(&storage->lock);
	if (at < storage->extent.from || at >= storage->extent.to)
		storage->extent = find_extent(storage, at);
	extent = storage->extent;
	(void)pthread_mutex_unlock(&storage->lock);
	return extent;
}

int image_io_read(struct image_io *storage, char *memory, uint64_t offset, uint64_t size)
{
	uint64_t at = 0;
	int ret = 0;

	if (storage->streamed)
		return read_full(storage->fd, memory, size);
	if (!storage->sparse)
		return read_run(storage, memory, offset, size);
	while (!ret && at < size) {
		struct extent extent = extent_at(storage, offset + at);
		uint64_t left = extent.to - (offset + at);
		uint64_t length = left < size - at ? left : size - at;

		if (extent.is_hole)
			memset(memory + at, 0, length);
		else
			ret = read_run(storage, memory + at, offset + at, length);
		at += length;
	}
	return ret;
}

void image_io_done(struct image_io *storage)
{
	(void)pthread_mutex_destroy(&storage->lock);
}
