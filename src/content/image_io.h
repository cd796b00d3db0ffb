/* SPDX-License-Identifier: GPL-2.0-only */
/* The storage side of an image of contents: a file that is moved range by range, in any order
 * and by several threads at once, or a stream, which takes its bytes in their order only. Past
 * the page cache where the file system allows that; blocks of zeros become holes. Silent:
 * callers print the error. */
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

struct image_io {
	/* Borrowed. */
	int fd;
	bool streamed;
	/* Of the whole file. */
	uint64_t size;
	bool skip_zeros;
	/* Has blocks for all of its bytes, so that those of holes are to be given back. */
	bool reserved;
	/* Has fewer blocks than bytes. */
	bool sparse;
	/* Past the page cache; ends, for all threads, when the file system will not have it. */
	bool direct;
	pthread_mutex_t lock;
	/* What was last asked about, where the file is sparse; under the lock. */
	struct extent extent;
};

/* To write a new file of @size bytes at @fd, or that many bytes of a stream. Reserves the room, so
 * that none is missed later: -ENOSPC. Whatever comes of it, image_io_done() follows. */
int image_io_begin_save(struct image_io *storage, int fd, bool streamed, bool skip_zeros,
			uint64_t size);
/* @memory is one range of the file, at @offset; only what makes its end a multiple of
 * CONTENT_ALIGNMENT is changed in it. */
int image_io_write(struct image_io *storage, char *memory, uint64_t offset, uint64_t size);
/* Gives the file its size, and reports what is found out only when the bytes reach the device. */
int image_io_end_save(struct image_io *storage);

/* To read the file of @size bytes at @fd, or that many bytes of a stream. -EIO: the file is
 * shorter. Whatever comes of it, image_io_done() follows. */
int image_io_begin_load(struct image_io *storage, int fd, bool streamed, uint64_t size);
/* -EIO: the file or stream ends early. */
int image_io_read(struct image_io *storage, char *memory, uint64_t offset, uint64_t size);

void image_io_done(struct image_io *storage);

#endif
