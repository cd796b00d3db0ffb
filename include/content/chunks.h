/* SPDX-License-Identifier: GPL-2.0-only */
/* The chunks of a new pages file: their sums, and those that the file shares with a base instead of
 * writing them. Several threads may work on other chunks at the same time. */
#ifndef AMDGPU_PLUGIN_CONTENT_CHUNKS_H
#define AMDGPU_PLUGIN_CONTENT_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "content/base.h"
#include "content/sums.h"

/* All zero: no chunks are wanted. */
struct chunks {
	/* Borrowed. */
	const struct base *base;
	/* The file of the base with the same name. */
	struct base_place same;
	struct sums sums;
	/* image_io.c writes the file by chunks. */
	bool is_used;
	/* The file system refused to share a chunk with -@error, and then no more are tried. */
	int error;
	uint64_t shared_bytes;
};

/* For a file @name of @size bytes. -ENOMEM. */
int chunks_init(struct chunks *chunks, const struct base *base, const char *name, uint64_t size);
void chunks_done(struct chunks *chunks);

/* Notes the sum of the chunk that is to be at @offset of the file, and looks for it in the base:
 * after *@place if that is a place, else at the same offset. False: it must be written. */
bool chunks_look(struct chunks *chunks, const void *chunk, uint64_t offset,
		 struct base_place *place);
/* Shares @size bytes, whole chunks, with the base. On error, nothing is shared. -ENOSPC: the file
 * system is full. */
int chunks_share(struct chunks *chunks, int fd, uint64_t offset, uint64_t size,
		 const struct base_place *place);

#endif
