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

/* Ranges begin at multiples of this; so do they in memory, which has room up
 * to the next multiple. */
#define STORAGE_ALIGNMENT 4096u

struct extent {
	uint64_t from;
	uint64_t to;
	bool is_hole;
};

struct storage {
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
 * that none is missed later: -ENOSPC. Whatever comes of it, storage_done() follows. */
int storage_begin_save(struct storage *storage, int fd, bool streamed, bool skip_zeros,
		       uint64_t size);
/* @memory is one range of the file, at @offset; only what makes its end a multiple of
 * STORAGE_ALIGNMENT is changed in it. */
int storage_write(struct storage *storage, char *memory, uint64_t offset, uint64_t size);
/* Gives the file its size, and reports what is found out only when the bytes reach the device. */
int storage_end_save(struct storage *storage);

/* To read the file of @size bytes at @fd, or that many bytes of a stream. -EIO: the file is
 * shorter. Whatever comes of it, storage_done() follows. */
int storage_begin_load(struct storage *storage, int fd, bool streamed, uint64_t size);
/* -EIO: the file or stream ends early. */
int storage_read(struct storage *storage, char *memory, uint64_t offset, uint64_t size);

void storage_done(struct storage *storage);

#endif
