/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads and writes ranges of a pages file, in any order and from several threads at the same time,
 * or in order only: a stream, and a file that is written to an object store. Bypasses the page
 * cache if the file system allows it, turns zeros into holes, and leaves tmpfs to tmpfs.c. These
 * functions print nothing: callers print the error.
 */
#ifndef AMDGPU_PLUGIN_CONTENT_IMAGE_IO_H
#define AMDGPU_PLUGIN_CONTENT_IMAGE_IO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/base.h"
#include "content/tmpfs.h"

struct extent {
	uint64_t from;
	uint64_t to;
	bool is_hole;
};

struct image_io {
	/* Borrowed. */
	int fd;
	/* A stream, or a new file on a file system that takes the bytes of a file in order. */
	bool in_order;
	/* Bytes of the whole file. */
	uint64_t size;
	bool skip_zeros;
	/* Borrowed: the chunks of a new file that may share some of them, or NULL. */
	struct base_chunks *chunks;
	/* The file has blocks for all its bytes, so a hole must give its blocks back. */
	bool reserved;
	/* The file has fewer blocks than bytes. */
	bool sparse;
	/* O_DIRECT is on. All threads lose it when the file system refuses it. */
	bool direct;
	/* Direct access needs memory at multiples of more than IMAGE_HEADER_SIZE. */
	bool aligns_memory;
	/* A file of tmpfs that is saved. */
	bool in_memory;
	/* A file of tmpfs that is loaded, or one that the page cache has whole: reads only copy. */
	bool cached;
	struct tmpfs tmpfs;
	pthread_mutex_t lock;
	/* Under the lock: the result of the last lookup in a sparse file. */
	struct extent extent;
};

/* A new file of @size bytes, or a stream of that many bytes. */
struct image_io_file {
	int fd;
	bool streamed;
	uint64_t size;
	bool skip_zeros;
	/* So many files are written at the same time. */
	size_t num_images;
	/* Borrowed: NULL, or zero, if the file shares nothing. */
	struct base_chunks *chunks;
};

/* Reserves the disk space, so that no later write lacks it: -ENOSPC. A file that shares chunks with
 * a base reserves nothing. Call image_io_done() even after an error. Then @io->in_order says
 * whether writes must come in order. */
int image_io_begin_save(struct image_io *io, const struct image_io_file *file);
/* Writes of other sizes than image_io_unit() come: nothing is shared. */
void image_io_drop_chunks(struct image_io *io);
/* @memory is one range of the file, at @offset. The function changes only the padding up to the
 * next multiple of CONTENT_ALIGNMENT, which direct access needs for offsets and sizes. */
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
/* Ranges of a multiple of so many bytes are written best. Does not change either. */
uint64_t image_io_unit(const struct image_io *io);

void image_io_done(struct image_io *io);

#endif
