// SPDX-License-Identifier: GPL-2.0-only
/* Several threads can write to mappings of a tmpfs at once, and only one of them by pwrite(). The
 * file is mapped in windows, because each mmap() makes all threads wait. */
#include "storage/tmpfs.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "amdgpu_plugin_util.h"

/* Mappings need more time of processors than pwrite(), because new pages are zeroed before. With
 * fewer processors for each image, those that pwrite() leaves idle have enough to do: they compute
 * checksums and write other images. On two processors, a dump that only maps takes 1.2 times as
 * long with one image, and 1.8 times with eight. */
#define PROCESSORS_PER_IMAGE 4u

/* The kernel locks the file to add pages, and threads that wait for the lock use their processor.
 * With mappings, six threads are as fast as twelve and use half as much time of processors. With
 * pwrite() only one thread can write, and the others sleep. If mappings begin to fail, because
 * memory or addresses are short, all six may call pwrite(), which is slow and works. */
#define MAPPING_WRITERS 6u

/* The bytes of a window. mmap() and munmap() wait until no thread of the process adds pages to a
 * mapping, and the others wait meanwhile, so there must be few calls. */
#define WINDOW_SIZE (32u << 20)

/* Linux 5.14; not in the headers of older systems. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

bool tmpfs_has_file(int fd)
{
	struct statfs stat;

	return fstatfs(fd, &stat) == 0 && stat.f_type == TMPFS_MAGIC;
}

void tmpfs_init(struct tmpfs *tmpfs, int fd, size_t num_images)
{
	size_t processors = usable_processors();

	*tmpfs = (struct tmpfs){
		.fd = fd,
		.maps = !processors || processors / PROCESSORS_PER_IMAGE >= num_images,
	};
	(void)sem_init(&tmpfs->writers, 0, tmpfs->maps ? MAPPING_WRITERS : 1);
	(void)pthread_mutex_init(&tmpfs->lock, NULL);
}

void tmpfs_done(struct tmpfs *tmpfs)
{
	for (unsigned int i = 0; i < TMPFS_WINDOWS; i++) {
		if (tmpfs->windows[i].memory)
			(void)munmap(tmpfs->windows[i].memory, WINDOW_SIZE);
	}
	(void)pthread_mutex_destroy(&tmpfs->lock);
	(void)sem_destroy(&tmpfs->writers);
}

/* Called with the lock. The window at @offset, or the oldest one that no thread uses; NULL: all are
 * in use. */
static struct tmpfs_window *find_window(struct tmpfs *tmpfs, uint64_t offset)
{
	struct tmpfs_window *found = NULL;

	for (unsigned int i = 0; i < TMPFS_WINDOWS; i++) {
		struct tmpfs_window *window = &tmpfs->windows[i];

		if (window->memory && window->offset == offset)
			return window;
		if (!window->users && (!found || window->offset < found->offset))
			found = window;
	}
	return found;
}

/* Called with the lock. @ret_old: memory to unmap without the lock, or NULL. */
static int map_window(const struct tmpfs *tmpfs, struct tmpfs_window *window, uint64_t offset,
		      char **ret_old)
{
	char *memory = mmap(NULL, WINDOW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, tmpfs->fd,
			    (off_t)offset);

	if (memory == MAP_FAILED)
		return -errno;
	*ret_old = window->memory;
	*window = (struct tmpfs_window){ .memory = memory, .offset = offset };
	return 0;
}

static int enter_window(struct tmpfs *tmpfs, uint64_t offset, struct tmpfs_window **ret_window)
{
	struct tmpfs_window *window;
	char *old = NULL;
	int ret;

	(void)pthread_mutex_lock(&tmpfs->lock);
	window = find_window(tmpfs, offset);
	ret = window ? 0 : -EBUSY;
	if (window && (!window->memory || window->offset != offset))
		ret = map_window(tmpfs, window, offset, &old);
	if (!ret)
		window->users++;
	(void)pthread_mutex_unlock(&tmpfs->lock);
	if (old)
		(void)munmap(old, WINDOW_SIZE);
	*ret_window = window;
	return ret;
}

static void leave_window(struct tmpfs *tmpfs, struct tmpfs_window *window)
{
	(void)pthread_mutex_lock(&tmpfs->lock);
	window->users--;
	(void)pthread_mutex_unlock(&tmpfs->lock);
}

/* A part of one window. */
static int write_part(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	uint64_t at = offset % WINDOW_SIZE;
	struct tmpfs_window *window;
	int ret = enter_window(tmpfs, offset - at, &window);

	if (ret < 0)
		return ret;
	/* Allocates the pages. On a full file system that is an error here. */
	ret = madvise(window->memory + at, size, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
	if (!ret)
		memcpy(window->memory + at, memory, size);
	leave_window(tmpfs, window);
	return ret;
}

/* Not for file systems on devices: they allocate blocks when the page is written back, so a full
 * device could end the process with SIGBUS. */
static int write_mapped(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	int ret = 0;

	while (!ret && size) {
		uint64_t room = WINDOW_SIZE - offset % WINDOW_SIZE;
		uint64_t part = size < room ? size : room;

		ret = write_part(tmpfs, memory, offset, part);
		memory += part;
		offset += part;
		size -= part;
	}
	return ret;
}

/* If a mapping fails, pwrite() works, or returns the error. */
static int write_range(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	if (__atomic_load_n(&tmpfs->maps, __ATOMIC_RELAXED)) {
		if (!write_mapped(tmpfs, memory, offset, size))
			return 0;
		__atomic_store_n(&tmpfs->maps, false, __ATOMIC_RELAXED);
	}
	return pwrite_full(tmpfs->fd, memory, size, offset);
}

int tmpfs_write(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	int ret;

	while (sem_wait(&tmpfs->writers) < 0)
		; /* EINTR is the only error. */
	ret = write_range(tmpfs, memory, offset, size);
	(void)sem_post(&tmpfs->writers);
	return ret;
}
