/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes to a file of tmpfs from several threads: through mappings, or by pwrite() on few
 * processors. */
#ifndef AMDGPU_PLUGIN_STORAGE_TMPFS_H
#define AMDGPU_PLUGIN_STORAGE_TMPFS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the file that is mapped for all threads. */
struct tmpfs_window {
	/* NULL if nothing is mapped. */
	char *memory;
	uint64_t offset;
	/* Threads that write to it. */
	unsigned int users;
};

/* The ranges that are written at the same time follow each other, so they lie in two windows, or in
 * three. */
#define TMPFS_WINDOWS 4

struct tmpfs {
	/* Borrowed. */
	int fd;
	/* There are enough processors for mappings of the file, and they work. */
	bool maps;
	/* How many more threads may write. */
	sem_t writers;
	pthread_mutex_t lock;
	/* Under the lock. */
	struct tmpfs_window windows[TMPFS_WINDOWS];
};

bool tmpfs_has_file(int fd);

/* Borrows @fd. @num_images are written at the same time. */
void tmpfs_init(struct tmpfs *tmpfs, int fd, size_t num_images);
void tmpfs_done(struct tmpfs *tmpfs);

/* -ENOSPC, and never SIGBUS, if the file system is full. */
int tmpfs_write(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size);

#endif
