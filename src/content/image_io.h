/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads and writes ranges of a pages file, in any order and from several threads at the same time,
 * or of a stream, in order only. Bypasses the page cache if the file system allows it, turns zeros
 * into holes, and writes to tmpfs in the way that it finds to be the faster one. These functions
 * print nothing: callers print the error. */
#ifndef AMDGPU_PLUGIN_CONTENT_IMAGE_IO_H
#define AMDGPU_PLUGIN_CONTENT_IMAGE_IO_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "content/content.h"

struct extent {
	uint64_t from;
	uint64_t to;
	bool is_hole;
};

/* How data is written to tmpfs. */
enum image_io_way {
	/* pwrite() locks the file, so one thread writes at a time. It takes the least time of a
	 * processor. */
	IMAGE_IO_PWRITE,
	/* Several threads write to mappings of the file at the same time. New pages are zeroed
	 * before. */
	IMAGE_IO_MAPPED,
	IMAGE_IO_WAYS,
};

/* The first writes of a run try both ways in turn. All images of a run share the result: they are
 * in one directory, and a trial of each of them would take a large part of the time. */
struct image_io_trial {
	/* False: always pwrite(). */
	bool useful;
	pthread_mutex_t lock;
	/* Under the lock: writes that have begun, and what ended, of all threads together. */
	unsigned int begun;
	double seconds[IMAGE_IO_WAYS];
	uint64_t bytes[IMAGE_IO_WAYS];
};

/* A part of a file of tmpfs that is mapped for all threads. */
struct image_io_window {
	/* NULL: none. */
	char *memory;
	uint64_t offset;
	/* Threads that write to it. */
	unsigned int users;
};

/* The ranges that are written at the same time follow each other, so they lie in two windows, or in
 * three. */
#define IMAGE_IO_WINDOWS 4

struct image_io {
	/* Borrowed. */
	int fd;
	bool streamed;
	/* Bytes of the whole file. */
	uint64_t size;
	bool skip_zeros;
	/* The file has blocks for all its bytes, so a hole must give its blocks back. */
	bool reserved;
	/* The file has fewer blocks than bytes. */
	bool sparse;
	/* O_DIRECT is on. All threads lose it when the file system refuses it. */
	bool direct;
	/* Direct access needs memory at multiples of more than IMAGE_HEADER_SIZE. */
	bool aligns_memory;
	/* A file of tmpfs, and mappings of it work. */
	bool in_memory;
	bool can_map;
	/* Borrowed. */
	struct image_io_trial *trial;
	pthread_mutex_t lock;
	/* Under the lock. */
	struct image_io_window windows[IMAGE_IO_WINDOWS];
	/* The result of the last lookup in a sparse file; under the lock. */
	struct extent extent;
};

/* For @num_images that are written at the same time. Mappings help only processors that have
 * nothing else to do, so there is no trial if the process may use few processors. */
void image_io_trial_init(struct image_io_trial *trial, size_t num_images);
void image_io_trial_done(struct image_io_trial *trial);

/* For a new file of @size bytes at @fd, or a stream of that many bytes. Reserves the disk space, so
 * that no later write lacks it: -ENOSPC. Borrows @trial. Call image_io_done() even after an
 * error. */
int image_io_begin_save(struct image_io *io, int fd, bool streamed, bool skip_zeros, uint64_t size,
			struct image_io_trial *trial);
/* @memory is one range of the file, at @offset. The function changes only the padding up to the
 * next multiple of CONTENT_ALIGNMENT. */
int image_io_write(struct image_io *io, char *memory, uint64_t offset, uint64_t size);
/* Sets the size of the file, and returns errors that only the device reports. */
int image_io_end_save(struct image_io *io);

/* For the file of @size bytes at @fd, or a stream of that many bytes. -EIO: the file is
 * shorter. Call image_io_done() even after an error. */
int image_io_begin_load(struct image_io *io, int fd, bool streamed, uint64_t size);
/* -EIO: the file or stream ends early. */
int image_io_read(struct image_io *io, char *memory, uint64_t offset, uint64_t size);

/* Where contents that follow the image's header start in memory, in bytes after a whole page: 0, or
 * IMAGE_HEADER_SIZE if direct access needs whole pages of memory, too. Does not change after
 * image_io_begin_save() or image_io_begin_load(). */
uint64_t image_io_shift(const struct image_io *io);

void image_io_done(struct image_io *io);

#endif
