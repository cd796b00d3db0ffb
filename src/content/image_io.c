// SPDX-License-Identifier: GPL-2.0-only
/* Reads and writes ranges of a pages file or stream. save.c and load.c choose the bytes, and
 * image_create_pages() and image_open_pages() open the file. */
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
#include "content/content.h"
#include "image/image.h"

/* The unit of holes and of chunks: shorter holes cost more calls than they save bytes. */
#define HOLE_SIZE BASE_CHUNK

/* The number of offsets that count_cached() samples. */
#define CACHE_PROBES 16

static uint64_t round_down(uint64_t size)
{
	return size / CONTENT_ALIGNMENT * CONTENT_ALIGNMENT;
}

static void init(struct image_io *io, int fd, bool in_order, uint64_t size)
{
	*io = (struct image_io){ .fd = fd, .in_order = in_order, .size = size };
	(void)pthread_mutex_init(&io->lock, NULL);
}

static bool set_direct(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/* Linux 6.1 and newer, and not every file system: the alignment of memory for direct access. Else
 * it may be that of a block. */
static bool aligns_memory(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx stat;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stat) &&
	    stat.stx_mask & STATX_DIOALIGN && stat.stx_dio_mem_align)
		return stat.stx_dio_mem_align > IMAGE_HEADER_SIZE;
#endif
	return true;
}

static void start_direct(struct image_io *io)
{
	io->direct = set_direct(io->fd, true);
	io->aligns_memory = io->direct && aligns_memory(io->fd);
}

uint64_t image_io_shift(const struct image_io *io)
{
	return io->aligns_memory ? IMAGE_HEADER_SIZE : 0;
}

uint64_t image_io_unit(const struct image_io *io)
{
	if (io->in_memory)
		return TMPFS_HUGE_PAGE;
	return io->chunks ? BASE_CHUNK : CONTENT_ALIGNMENT;
}

/* Object stores that are mounted by FUSE take the bytes of a file in order. At other bytes some end
 * the upload, so the plugin does not try. Some report success when they ignore a new size. None of
 * them has fallocate(), which the other file systems of FUSE may lack, too. */
static bool wants_order(int fd, uint64_t size)
{
	struct statfs stat;

	return fstatfs(fd, &stat) == 0 && stat.f_type == FUSE_SUPER_MAGIC &&
	       fallocate(fd, 0, 0, (off_t)size) < 0 && errno == EOPNOTSUPP;
}

/* Blocks that are shared need no room, and how many there will be is not known. */
static int reserve(struct image_io *io)
{
	if (io->chunks && base_size(io->chunks->base))
		return 0;
	io->reserved = fallocate(io->fd, 0, 0, (off_t)io->size) == 0;
	return !io->reserved && errno == ENOSPC ? -ENOSPC : 0;
}

int image_io_begin_save(struct image_io *io, const struct image_io_file *file)
{
	const int fd = file->fd;
	const uint64_t size = file->size;
	int ret;

	init(io, fd, file->streamed || wants_order(fd, size), size);
	io->skip_zeros = file->skip_zeros;
	if (io->in_order)
		return 0;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	/* There, fallocate() fills the file with zeros, and there is no page cache to bypass. */
	io->in_memory = tmpfs_has_file(fd);
	if (io->in_memory) {
		tmpfs_init(&io->tmpfs, fd, size, file->num_images);
		return 0;
	}
	if (file->chunks && file->chunks->sums.list) {
		io->chunks = file->chunks;
		io->chunks->is_used = true;
	}
	ret = reserve(io);
	if (!ret)
		start_direct(io);
	return ret;
}

void image_io_drop_chunks(struct image_io *io)
{
	if (io->chunks)
		io->chunks->is_used = false;
	io->chunks = NULL;
}

/* For a file system that accepts O_DIRECT and then refuses the access. The flag of the file changes
 * before io->direct: a thread with the old value moves whole blocks once more, which works. The
 * other order would let a thread make an unaligned direct access, which fails. */
static int disable_direct(struct image_io *io)
{
	if (!set_direct(io->fd, false))
		return -EINVAL;
	__atomic_store_n(&io->direct, false, __ATOMIC_RELEASE);
	return 0;
}

/* Bytes of the file without holes. */
static int write_run(struct image_io *io, char *memory, uint64_t offset, uint64_t size)
{
	bool direct = __atomic_load_n(&io->direct, __ATOMIC_ACQUIRE);
	uint64_t length = direct ? round_up(size, CONTENT_ALIGNMENT) : size;
	int ret;

	if (io->in_memory)
		return tmpfs_write(&io->tmpfs, memory, offset, size);
	memset(memory + size, 0, length - size);
	ret = pwrite_full(io->fd, memory, length, offset);
	if (ret != -EINVAL || !direct)
		return ret;
	ret = disable_direct(io);
	return ret < 0 ? ret : pwrite_full(io->fd, memory, size, offset);
}

static bool is_zero(const char *memory, uint64_t size)
{
	static const char zeros[16];

	if (size <= sizeof(zeros))
		return !memcmp(memory, zeros, size);
	return !memcmp(memory, zeros, sizeof(zeros)) &&
	       !memcmp(memory, memory + sizeof(zeros), size - sizeof(zeros));
}

/* Leaves a hole. The file is new, so these bytes were never written. */
static int skip_run(struct image_io *io, char *memory, uint64_t offset, uint64_t size)
{
	if (io->reserved && fallocate(io->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				      (off_t)offset, (off_t)size) < 0)
		return write_run(io, memory, offset, size);
	return 0;
}

/* Bytes that go to the file in the same way. */
struct run {
	enum { RUN_DATA, RUN_ZERO, RUN_SHARED } kind;
	/* From the first byte of the write on. */
	uint64_t from, to;
	/* The place of the last chunk of a shared run. */
	struct base_place place;
};

/* Decides how the block of HOLE_SIZE bytes at @from, or its part before @size, goes to the file.
 * @run.place: the last chunk of the shared run before it, or fd -1 if the run before it was not
 * shared. */
static struct run look(const struct image_io *io, const char *memory, uint64_t offset,
		       struct run run)
{
	const char *block = memory + run.from;

	run.kind = RUN_DATA;
	if (io->skip_zeros && is_zero(block, run.to - run.from))
		run.kind = RUN_ZERO;
	else if (io->chunks && run.to - run.from == BASE_CHUNK &&
		 base_look_for_chunk(io->chunks, block, offset + run.from, &run.place))
		run.kind = RUN_SHARED;
	if (run.kind != RUN_SHARED)
		run.place.fd = -1;
	return run;
}

/* The run that begins with the block @first. @ret_next: the block behind it. */
static struct run find_run(const struct image_io *io, const char *memory, uint64_t offset,
			   uint64_t size, struct run first, struct run *ret_next)
{
	struct run run = first, next = first;

	while (next.to < size) {
		uint64_t left = size - next.to;

		next.from = next.to;
		next.to += left < HOLE_SIZE ? left : HOLE_SIZE;
		next = look(io, memory, offset, next);
		if (next.kind != run.kind || (next.kind == RUN_SHARED &&
					      (next.place.fd != run.place.fd ||
					       next.place.offset != run.place.offset + BASE_CHUNK)))
			break;
		run.to = next.to;
		run.place = next.place;
	}
	*ret_next = next;
	return run;
}

static int share_run(struct image_io *io, char *memory, uint64_t offset, const struct run *run)
{
	const uint64_t size = run->to - run->from;
	const struct base_place first = { run->place.fd, run->place.offset + BASE_CHUNK - size };
	int ret = base_share_chunks(io->chunks, io->fd, offset + run->from, size, &first);

	return !ret || ret == -ENOSPC ? ret
				      : write_run(io, memory + run->from, offset + run->from, size);
}

static int put_run(struct image_io *io, char *memory, uint64_t offset, const struct run *run)
{
	const uint64_t size = run->to - run->from;

	switch (run->kind) {
	case RUN_ZERO:
		return skip_run(io, memory + run->from, offset + run->from, size);
	case RUN_SHARED:
		return share_run(io, memory, offset, run);
	case RUN_DATA:
		return write_run(io, memory + run->from, offset + run->from, size);
	}
	return -EINVAL;
}

int image_io_write(struct image_io *io, char *memory, uint64_t offset, uint64_t size)
{
	struct run run, next = { .to = size < HOLE_SIZE ? size : HOLE_SIZE, .place = { -1, 0 } };
	int ret = 0;

	if (io->in_order)
		return write_full(io->fd, memory, size);
	if (!io->skip_zeros && !io->chunks)
		return write_run(io, memory, offset, size);
	next = look(io, memory, offset, next);
	do {
		run = find_run(io, memory, offset, size, next, &next);
		ret = put_run(io, memory, offset, &run);
	} while (!ret && run.to < size);
	return ret;
}

int image_io_end_save(struct image_io *io)
{
	if (!io->in_order && ftruncate(io->fd, (off_t)io->size) < 0)
		return -errno;
	return fd_sync(io->fd);
}

/* How many of the samples are in the page cache. */
static unsigned int count_cached(int fd, uint64_t size)
{
	unsigned int hits = 0;
	char byte;

	for (unsigned int i = 0; i < CACHE_PROBES; i++) {
		struct iovec vector = { &byte, sizeof(byte) };

		hits += preadv2(fd, &vector, 1, (off_t)(size / CACHE_PROBES * i), RWF_NOWAIT) == 1;
	}
	return hits;
}

int image_io_begin_load(struct image_io *io, int fd, bool streamed, uint64_t size)
{
	unsigned int cached;
	struct stat stat;

	init(io, fd, streamed, size);
	if (streamed)
		return 0;
	if (fstat(fd, &stat) < 0)
		return -errno;
	/* lseek() reports a hole behind the end of a file, so check the length here. */
	if ((uint64_t)stat.st_size < size)
		return -EIO;
	io->sparse = (uint64_t)stat.st_blocks * S_BLKSIZE < size;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	/* A direct read says nothing of the page cache. */
	(void)set_direct(fd, false);
	cached = tmpfs_has_file(fd) ? CACHE_PROBES : count_cached(fd, size);
	io->cached = cached == CACHE_PROBES;
	/* If most of the file is in the page cache, that is the faster source. */
	if (cached <= CACHE_PROBES / 2)
		start_direct(io);
	return 0;
}

/* Bytes of the file that are no hole. */
static int read_run(struct image_io *io, char *memory, uint64_t offset, uint64_t size)
{
	bool direct = __atomic_load_n(&io->direct, __ATOMIC_ACQUIRE);
	int ret;

	/* Direct access needs whole blocks, so the read may extend beyond the end of the file. */
	ret = pread_up_to(io->fd, memory, size, direct ? round_up(size, CONTENT_ALIGNMENT) : size,
			  offset);
	if (ret != -EINVAL || !direct)
		return ret;
	ret = disable_direct(io);
	return ret < 0 ? ret : pread_full(io->fd, memory, size, offset);
}

/* The extent of data, or of a hole, that contains @at. Holes may start and end inside a block of
 * CONTENT_ALIGNMENT; a block with any data is data. If lseek() fails, the rest is data. */
static struct extent find_extent(const struct image_io *io, uint64_t at)
{
	off_t data = lseek(io->fd, (off_t)at, SEEK_DATA);
	bool is_hole = data < 0 ? errno == ENXIO : round_down((uint64_t)data) > at;
	off_t end = is_hole ? data : lseek(io->fd, data < 0 ? (off_t)at : data, SEEK_HOLE);
	uint64_t to =
		is_hole ? round_down((uint64_t)end) : round_up((uint64_t)end, CONTENT_ALIGNMENT);

	if (end < 0)
		return (struct extent){ at, UINT64_MAX, is_hole };
	/* A wrong answer of the file system must not stop the loop of the caller. */
	if (to <= at)
		return (struct extent){ at, UINT64_MAX, false };
	return (struct extent){ at, to, is_hole };
}

/* Remembers the last extent, because some file systems scan every page for an answer. */
static struct extent extent_at(struct image_io *io, uint64_t at)
{
	HOLD(&io->lock);
	if (at < io->extent.from || at >= io->extent.to)
		io->extent = find_extent(io, at);
	return io->extent;
}

int image_io_read(struct image_io *io, char *memory, uint64_t offset, uint64_t size)
{
	uint64_t at = 0;
	int ret = 0;

	if (io->in_order)
		return read_full(io->fd, memory, size);
	if (!io->sparse)
		return read_run(io, memory, offset, size);
	while (!ret && at < size) {
		struct extent extent = extent_at(io, offset + at);
		uint64_t left = extent.to - (offset + at);
		uint64_t length = left < size - at ? left : size - at;

		if (extent.is_hole)
			memset(memory + at, 0, length);
		else
			ret = read_run(io, memory + at, offset + at, length);
		at += length;
	}
	return ret;
}

void image_io_done(struct image_io *io)
{
	if (io->in_memory)
		tmpfs_done(&io->tmpfs);
	(void)pthread_mutex_destroy(&io->lock);
}
