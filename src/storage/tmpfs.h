/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes to a file of tmpfs from several threads, by pwrite() or through mappings, whichever a
 * trial finds to be the faster way. */
#ifndef AMDGPU_PLUGIN_STORAGE_TMPFS_H
#define AMDGPU_PLUGIN_STORAGE_TMPFS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/trial.h"

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

/* All zero: no file of tmpfs. */
struct tmpfs {
	/* Borrowed. */
	int fd;
	struct trial *trial;
	/* Mappings of the file work. */
	bool can_map;
	pthread_mutex_t lock;
	/* Under the lock. */
	struct tmpfs_window windows[TMPFS_WINDOWS];
};

bool tmpfs_has_file(int fd);

/* For @num_images that are written at the same time. All images of a run share the trial: they are
 * in one directory, and a trial of each of them would take a large part of the time. Mappings help
 * only processors that have nothing else to do, so there is no trial if the process may use few
 * processors. */
void tmpfs_init_trial(struct trial *trial, size_t num_images);

/* Borrows @fd and @trial. */
void tmpfs_init(struct tmpfs *tmpfs, int fd, struct trial *trial);
void tmpfs_done(struct tmpfs *tmpfs);

/* -ENOSPC, and never SIGBUS, if the file system is full. */
int tmpfs_write(struct tmpfs *tmpfs, const char *memory, uint64_t offset, uint64_t size);

#endif
