// SPDX-License-Identifier: GPL-2.0-only
/* Several threads can write to mappings of a tmpfs at once, and only one of them by pwrite(). The
 * file is mapped in windows, because each mmap() makes all threads wait. */
#include "content/tmpfs.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

/* Plain pages through a mapping need more time of processors than pwrite(), because new pages are
 * zeroed before. With fewer processors for each image, those that pwrite() leaves idle have enough
 * to do: they compute checksums and write other images. On two processors, a dump that only maps
 * takes 1.2 times as long with one image, and 1.8 times with eight. */
#define PROCESSORS_PER_IMAGE 4u

/* The kernel locks the file to add pages, and threads that wait for the lock use their processor.
 * With plain pages in a mapping, six threads are as fast as twelve and use half as much time of
 * processors. With pwrite() only one thread can write, and the others sleep. If the mapping begins
 * to fail, because memory or addresses are short, all six may call pwrite(), which is slow and
 * works. Huge pages need the lock so rarely that all threads help. */
#define MAPPING_WRITERS 6u

/* How many huge pages each way fills before the cheaper one is chosen. Where the host of a virtual
 * machine has to supply memory at its first use, or memory is fragmented, a huge page may take
 * milliseconds. */
#define TRIAL_PAGES 4u

/* After so many refusals, the kernel has no huge pages to give. */
#define REFUSALS_MAX 4u

/* After the trial, huge pages are given up if they cost so many times what plain pages have cost,
 * on the average of the last ones, which are at most AVERAGE_PAGES. */
#define LATER_COST    2u
#define AVERAGE_PAGES 32u

bool tmpfs_has_file(int fd)
{
	struct statfs stat;

	return fstatfs(fd, &stat) == 0 && stat.f_type == TMPFS_MAGIC;
}

/* The kernel makes huge pages only where the address is aligned as the offset in the file is. */
static void map_file(struct tmpfs *tmpfs)
{
	size_t room_size = tmpfs->size + TMPFS_HUGE_PAGE;
	char *room = mmap(NULL, room_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			  -1, 0);
	char *aligned, *file;

	if (room == MAP_FAILED)
		return;
	tmpfs->room = room;
	tmpfs->room_size = room_size;
	aligned = room + -(uintptr_t)room % TMPFS_HUGE_PAGE;
	file = mmap(aligned, tmpfs->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, tmpfs->fd,
		    0);
	if (file != MAP_FAILED)
		tmpfs->memory = file;
}

void tmpfs_init(struct tmpfs *tmpfs, int fd, uint64_t size, size_t num_images)
{
	size_t processors = usable_processors();

	*tmpfs = (struct tmpfs){ .fd = fd, .size = size };
	map_file(tmpfs);
	tmpfs->maps =
		tmpfs->memory && (!processors || processors / PROCESSORS_PER_IMAGE >= num_images);
	tmpfs->has_chosen = !tmpfs->memory;
	(void)sem_init(&tmpfs->writers, 0, tmpfs->maps ? MAPPING_WRITERS : 1);
	(void)pthread_mutex_init(&tmpfs->lock, NULL);
}

void tmpfs_done(struct tmpfs *tmpfs)
{
	if (tmpfs->room)
		(void)munmap(tmpfs->room, tmpfs->room_size);
	(void)pthread_mutex_destroy(&tmpfs->lock);
	(void)sem_destroy(&tmpfs->writers);
}

/* Copies to pages that are there. They then leave the mapping, so that they count as memory of the
 * file and not of this process. */
static void fill(char *to, const char *memory, uint64_t size)
{
	uintptr_t in_page = (uintptr_t)to % (uintptr_t)getpagesize();

	memcpy(to, memory, size);
	(void)madvise(to - in_page, size + in_page, MADV_DONTNEED);
}

/* Not for file systems on devices: they allocate blocks when the page is written back, so a full
 * device could end the process with SIGBUS. */
static int write_mapped(const struct tmpfs *tmpfs, const char *memory, uint64_t offset,
			uint64_t size)
{
	char *to = tmpfs->memory + offset;

	/* Allocates the pages. On a full file system that is an error here. */
	if (madvise(to, size, MADV_POPULATE_WRITE) < 0)
		return -errno;
	fill(to, memory, size);
	return 0;
}

/* If the mapping fails, pwrite() works, or returns the error. */
static int write_plain_now(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	if (__atomic_load_n(&tmpfs->maps, __ATOMIC_RELAXED)) {
		if (!write_mapped(tmpfs, memory, offset, size))
			return 0;
		__atomic_store_n(&tmpfs->maps, false, __ATOMIC_RELAXED);
	}
	return pwrite_full(tmpfs->fd, memory, size, offset);
}

static int write_plain(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	int ret;

	while (sem_wait(&tmpfs->writers) < 0)
		; /* EINTR is the only error. */
	ret = write_plain_now(tmpfs, memory, offset, size);
	(void)sem_post(&tmpfs->writers);
	return ret;
}

/* Makes whole huge pages of an empty part of the file. */
static int collapse(char *to, uint64_t size)
{
	/* Where nothing is present, the kernel refuses. */
	for (uint64_t at = 0; at < size; at += TMPFS_HUGE_PAGE) {
		if (madvise(to + at, (size_t)getpagesize(), MADV_POPULATE_WRITE) < 0)
			return -errno;
	}
	if (madvise(to, size, MADV_COLLAPSE) < 0)
		return -errno;
	/* The kernel also reports success if it has huge pages of another size, and makes none. */
	return madvise(to, size, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
}

/* Called with the lock. */
static void choose(struct tmpfs *tmpfs, enum tmpfs_way way)
{
	__atomic_store_n(&tmpfs->way, way, __ATOMIC_RELAXED);
	__atomic_store_n(&tmpfs->has_chosen, true, __ATOMIC_RELAXED);
}

/* EINVAL: the kernel is too old, or the user has switched huge pages of shared memory off. Others
 * pass: the memory is fragmented, or the cgroup near its limit. */
static void note_result(struct tmpfs *tmpfs, int ret)
{
	HOLD(&tmpfs->lock);
	tmpfs->refused = ret < 0 ? tmpfs->refused + 1 : 0;
	if (ret == -EINVAL || tmpfs->refused == REFUSALS_MAX)
		choose(tmpfs, TMPFS_PLAIN);
}

static int write_huge(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	char *to = tmpfs->memory + offset;
	int ret = collapse(to, size);

	note_result(tmpfs, ret);
	if (ret < 0)
		return write_plain(tmpfs, memory, offset, size);
	fill(to, memory, size);
	return 0;
}

static double average(const struct tmpfs_cost *cost)
{
	return cost->pages ? cost->seconds / cost->pages : 0;
}

/* Called with the lock. In the trial, huge pages are given up as soon as they have cost more than
 * all plain ones of it will. Later, more threads wait for the same memory, so they may cost more.
 */
static void compare(struct tmpfs *tmpfs)
{
	const struct tmpfs_cost *plain = &tmpfs->costs[TMPFS_PLAIN];
	struct tmpfs_cost *huge = &tmpfs->costs[TMPFS_HUGE];
	unsigned int pages = huge->pages > TRIAL_PAGES ? huge->pages : TRIAL_PAGES;
	double most = average(plain) * pages * (tmpfs->has_chosen ? LATER_COST : 1);

	if (plain->pages && huge->seconds > most)
		choose(tmpfs, TMPFS_PLAIN);
	else if (plain->pages >= TRIAL_PAGES && huge->pages >= TRIAL_PAGES)
		choose(tmpfs, TMPFS_HUGE);
	if (huge->pages < AVERAGE_PAGES)
		return;
	huge->seconds /= 2;
	huge->pages /= 2;
}

static void note_cost(struct tmpfs *tmpfs, enum tmpfs_way way, uint64_t size, double seconds)
{
	HOLD(&tmpfs->lock);
	tmpfs->costs[way].pages += (unsigned int)(size / TMPFS_HUGE_PAGE);
	tmpfs->costs[way].seconds += seconds;
	if (!tmpfs->has_chosen || tmpfs->way == TMPFS_HUGE)
		compare(tmpfs);
}

/* In the trial, the two ways take turns. */
static enum tmpfs_way next_way(struct tmpfs *tmpfs)
{
	enum tmpfs_way way;

	HOLD(&tmpfs->lock);
	way = tmpfs->has_chosen ? tmpfs->way : tmpfs->next;
	tmpfs->next = tmpfs->next == TMPFS_PLAIN ? TMPFS_HUGE : TMPFS_PLAIN;
	return way;
}

/* Whole aligned huge pages. */
static int write_pages(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	enum tmpfs_way way = next_way(tmpfs);
	/* The time of day would have what other programs took of the processor. */
	double begin = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	int ret = (way == TMPFS_HUGE ? write_huge : write_plain)(tmpfs, memory, offset, size);

	if (!ret)
		note_cost(tmpfs, way, size, clock_seconds(CLOCK_THREAD_CPUTIME_ID) - begin);
	return ret;
}

static bool is_plain(const struct tmpfs *tmpfs)
{
	return __atomic_load_n(&tmpfs->has_chosen, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&tmpfs->way, __ATOMIC_RELAXED) == TMPFS_PLAIN;
}

int tmpfs_write(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size)
{
	uint64_t head = -offset % TMPFS_HUGE_PAGE, pages, tail;
	int ret = 0;

	if (size < head || size - head < TMPFS_HUGE_PAGE || is_plain(tmpfs))
		return write_plain(tmpfs, memory, offset, size);
	tail = (offset + size) % TMPFS_HUGE_PAGE;
	pages = size - head - tail;
	if (head)
		ret = write_plain(tmpfs, memory, offset, head);
	if (!ret)
		ret = write_pages(tmpfs, memory + head, offset + head, pages);
	if (!ret && tail)
		ret = write_plain(tmpfs, memory + head + pages, offset + head + pages, tail);
	return ret;
}
