/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes to a file of tmpfs from several threads: to huge pages where these cost less, else through
 * a mapping with pages of the kernel's size, or by pwrite() on few processors. */
#ifndef AMDGPU_PLUGIN_CONTENT_TMPFS_H
#define AMDGPU_PLUGIN_CONTENT_TMPFS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Only whole aligned huge pages of the file are written as such, so a write of less has none. The
 * kernel's may have another size: then it makes none. */
#define TMPFS_HUGE_PAGE (2ull << 20)

/* How a huge page of the file is filled. */
enum tmpfs_way {
	/* In pages of the kernel's size, as the rest of the file. */
	TMPFS_PLAIN,
	TMPFS_HUGE,
	TMPFS_WAYS,
};

/* What a way has cost so far. */
struct tmpfs_cost {
	unsigned int pages;
	/* Processor time of the threads. */
	double seconds;
};

struct tmpfs {
	/* Borrowed. */
	int fd;
	uint64_t size;
	/* The file, at an address that is aligned as huge pages are, in @room; NULL: not mapped. */
	char *memory;
	char *room;
	size_t room_size;
	/* There are enough processors for plain pages through the mapping, and that works. */
	bool maps;
	/* How many more threads may write plain pages. */
	sem_t writers;
	/* Both ways are tried before it is set. */
	bool has_chosen;
	enum tmpfs_way way;
	pthread_mutex_t lock;
	/* Under the lock, as are changes of the two above. */
	enum tmpfs_way next;
	struct tmpfs_cost costs[TMPFS_WAYS];
	/* Huge pages that the kernel has refused since it has made one. */
	unsigned int refused;
};

bool tmpfs_has_file(int fd);

/* Borrows @fd, whose file has @size bytes. @num_images are written at the same time. */
void tmpfs_init(struct tmpfs *tmpfs, int fd, uint64_t size, size_t num_images);
void tmpfs_done(struct tmpfs *tmpfs);

/* -ENOSPC, and never SIGBUS, if the file system is full. Bytes that are not written stay a hole,
 * and no memory is taken for them. */
int tmpfs_write(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size);

#endif
