/* SPDX-License-Identifier: GPL-2.0-only */
/* The checksums of the chunks of a pages file, and the file in which a later dump finds them. The
 * image does not need that file. docs/image-format.md describes it. */
#ifndef AMDGPU_PLUGIN_CONTENT_SUMS_H
#define AMDGPU_PLUGIN_CONTENT_SUMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Chunks are whole blocks of file systems, and as large as holes. */
#define SUMS_CHUNK (256u << 10)

/* The 128-bit XXH3 of a chunk as it was written. All zero: no sum, because the chunk is a hole, or
 * the end of the file. */
struct sums_sum {
	uint64_t words[2];
};

/* The sums of a file, and what shows that the file has not changed since. */
struct sums {
	uint64_t file_size, inode;
	int64_t seconds, nanoseconds;
	struct sums_sum *list;
	size_t count;
};

struct sums_sum sums_of_chunk(const void *chunk);
/* Notes size, inode and time of the complete file. */
void sums_note_file(struct sums *sums, const struct stat *stat);
/* The bytes of a file of sums after its length. -ENOMEM. */
int sums_pack(const struct sums *sums, void **ret_bytes, size_t *ret_size);
/* -EBADMSG: the bytes are damaged, or of another version. -ENOMEM. Free the list of the result. */
int sums_unpack(const void *bytes, size_t size, struct sums *ret_sums);

#endif
