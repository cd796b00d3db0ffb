/* SPDX-License-Identifier: GPL-2.0-only */
/* The chunks of pages files, with which a new image shares those of an older dump (option base):
 * the older files, their sums, and the chunks of a new file. The image does not need the file of
 * sums, which docs/image-format.md describes. Several threads may work on other chunks at the same
 * time.
 */
#ifndef AMDGPU_PLUGIN_CONTENT_BASE_H
#define AMDGPU_PLUGIN_CONTENT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chunks are whole blocks of file systems, and as large as holes. */
#define BASE_CHUNK (256u << 10)

/* The 128-bit XXH3 of a chunk as it was written. All zero: no sum, because the chunk is a hole, or
 * the end of the file. */
struct base_sum {
	uint64_t words[2];
};

/* The sums of a file, and what shows that the file has not changed since. */
struct base_sums {
	struct base_stamp {
		uint64_t file_size, inode, seconds, nanoseconds;
	} stamp;
	struct base_sum *list;
	size_t count;
};

/* A chunk in a pages file, whose descriptor is the base's. */
struct base_place {
	int fd;
	uint64_t offset;
};

/* Why a pages file of the base is not used. */
enum base_flaw {
	BASE_DAMAGED,
	BASE_MISSING,
	BASE_CHANGED,
	BASE_BEING_WRITTEN,
	BASE_FLAWS,
};

/* The pages files of an older dump that have sums and have not changed since. */
struct base;

/* Reads the sums in @directory, which is borrowed. Without a directory (-1), and for one without
 * sums, the base is empty. -ENOMEM, or the error of a call that lists the directory. */
int base_open(int directory, struct base **ret_base);
/* Accepts NULL. */
void base_free(struct base *base);
/* The bytes of all chunks with a sum. */
uint64_t base_size(const struct base *base);
/* How many pages files are left out for this. */
size_t base_count_flaws(const struct base *base, enum base_flaw flaw);
/* Whether no file has changed since base_open(). */
bool base_is_unchanged(const struct base *base);

/* The chunks of a new pages file. All zero: no chunks are wanted. */
struct base_chunks {
	/* Borrowed. */
	const struct base *base;
	/* The file of the base with the same name, or fd -1. */
	struct base_place same;
	struct base_sums sums;
	/* image_io.c writes the file by chunks. */
	bool is_used;
	/* The file system refused to share a chunk with -@error, and then no more are tried. */
	int error;
	uint64_t shared_bytes;
};

struct base_sum base_sum_chunk(const void *chunk);
/* For a file @name of @size bytes. -ENOMEM. */
int base_chunks_init(struct base_chunks *chunks, const struct base *base, const char *name,
		     uint64_t size);
void base_chunks_done(struct base_chunks *chunks);
/* Notes the sum of the chunk that is to be at @offset of the file, and looks for it in the base:
 * after *@place if that is a place, else at the same offset. False: it must be written. */
bool base_look_for_chunk(struct base_chunks *chunks, const void *chunk, uint64_t offset,
			 struct base_place *place);
/* Shares @size bytes, whole chunks, with the base. On error, nothing is shared. -ENOSPC: the file
 * system is full. */
int base_share_chunks(struct base_chunks *chunks, int fd, uint64_t offset, uint64_t size,
		      const struct base_place *place);
/* The bytes of the file of sums after its length, when the pages file @fd is complete. */
int base_pack_sums(struct base_chunks *chunks, int fd, void **ret_bytes, size_t *ret_size);

#endif
