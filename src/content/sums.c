// SPDX-License-Identifier: GPL-2.0-only
/* Computes the sums, and packs them with the size and the times of the pages file that they are of.
 */
#include "content/sums.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "content/xxh3.h"

#define MAGIC   0x736d757375706761ULL /* "agpusums" */
#define VERSION 1

/* Words of eight bytes, little-endian. The sums follow, and the XXH3 of all that. */
struct header {
	uint64_t magic, version, chunk;
	uint64_t file_size, inode, seconds, nanoseconds;
	uint64_t count;
};

struct sums_sum sums_of_chunk(const void *chunk)
{
	XXH128_hash_t hash = XXH3_128bits(chunk, SUMS_CHUNK);

	return (struct sums_sum){ { hash.low64, hash.high64 } };
}

void sums_note_file(struct sums *sums, const struct stat *stat)
{
	sums->file_size = (uint64_t)stat->st_size;
	sums->inode = stat->st_ino;
	sums->seconds = stat->st_mtim.tv_sec;
	sums->nanoseconds = stat->st_mtim.tv_nsec;
}

static void swap_words(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = htole64(words[i]);
}

int sums_pack(const struct sums *sums, void **ret_bytes, size_t *ret_size)
{
	const struct header header = {
		MAGIC,
		VERSION,
		SUMS_CHUNK,
		sums->file_size,
		sums->inode,
		(uint64_t)sums->seconds,
		(uint64_t)sums->nanoseconds,
		sums->count,
	};
	const size_t list_size = sums->count * sizeof(*sums->list);
	const size_t size = sizeof(header) + list_size + sizeof(uint64_t);
	char *bytes = malloc(size);
	uint64_t check;

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, &header, sizeof(header));
	if (list_size)
		memcpy(bytes + sizeof(header), sums->list, list_size);
	swap_words((uint64_t *)bytes, (size - sizeof(check)) / sizeof(uint64_t));
	check = htole64(XXH3_64bits(bytes, size - sizeof(check)));
	memcpy(bytes + size - sizeof(check), &check, sizeof(check));
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

/* Whether the file has so many bytes as its header says, unchanged. */
static bool is_whole(const char *bytes, size_t size, struct header *ret_header)
{
	const size_t frame = sizeof(*ret_header) + sizeof(uint64_t);
	uint64_t check;

	if (size < frame)
		return false;
	memcpy(&check, bytes + size - sizeof(check), sizeof(check));
	memcpy(ret_header, bytes, sizeof(*ret_header));
	swap_words((uint64_t *)ret_header, sizeof(*ret_header) / sizeof(uint64_t));
	return le64toh(check) == XXH3_64bits(bytes, size - sizeof(check)) &&
	       ret_header->magic == MAGIC && ret_header->version == VERSION &&
	       ret_header->chunk == SUMS_CHUNK &&
	       ret_header->count == ret_header->file_size / SUMS_CHUNK &&
	       ret_header->count == (size - frame) / sizeof(struct sums_sum) &&
	       (size - frame) % sizeof(struct sums_sum) == 0;
}

int sums_unpack(const void *bytes, size_t size, struct sums *ret_sums)
{
	struct header header;
	struct sums_sum *list;

	if (!is_whole(bytes, size, &header))
		return -EBADMSG;
	list = calloc(header.count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	memcpy(list, (const char *)bytes + sizeof(header), header.count * sizeof(*list));
	swap_words(list->words, 2 * header.count);
	*ret_sums = (struct sums){
		.file_size = header.file_size,
		.inode = header.inode,
		.seconds = (int64_t)header.seconds,
		.nanoseconds = (int64_t)header.nanoseconds,
		.list = list,
		.count = header.count,
	};
	return 0;
}
