// SPDX-License-Identifier: GPL-2.0-only
/* The list of a GPU's BOs, walked once: each range continues where the last one ended, and may hold
 * the end of one BO and several others. A BO is imported at its first range, and released when its
 * last range is finished. */
#include "content/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "content/checksum.h"

struct import {
	struct sdma_bo bo;
	/* Ranges that use the BO now. */
	unsigned int users;
};

static int fail(const struct ranges *ranges, int ret, const char *action, size_t bo)
{
	transfer_error_set(ranges->error, ranges->job, ret, action, bo);
	return ret;
}

int ranges_init(struct ranges *ranges, const struct content_job *job, uint64_t size,
		const struct slots *slots, struct transfer_error *error)
{
	*ranges = (struct ranges){
		.job = job,
		.error = error,
		.size = size,
		.range_size = slots->size,
		.imports = calloc(job->num_bos + 1, sizeof(*ranges->imports)),
	};
	(void)pthread_mutex_init(&ranges->lock, NULL);
	return ranges->imports ? 0 : -ENOMEM;
}

void ranges_start(struct ranges *ranges, struct sdma *gpu, uint64_t contents_at)
{
	ranges->gpu = gpu;
	ranges->contents_at = contents_at;
}

void ranges_release(struct ranges *ranges)
{
	for (size_t i = 0; ranges->imports && i < ranges->job->num_bos; i++)
		sdma_bo_release(&ranges->imports[i].bo);
}

void ranges_done(struct ranges *ranges)
{
	if (!ranges->job)
		return;
	ranges_release(ranges);
	free(ranges->imports);
	(void)pthread_mutex_destroy(&ranges->lock);
	*ranges = (struct ranges){ 0 };
}

int ranges_alloc_pieces(struct range *range, const struct slots *slots)
{
	size_t pieces = SDMA_SLOT_PIECES(slots->memory);

	*range = (struct range){ .max_pieces = pieces };
	range->pieces = calloc(pieces, sizeof(*range->pieces));
	return range->pieces ? 0 : -ENOMEM;
}

void ranges_free_pieces(struct range *range)
{
	free(range->pieces);
	*range = (struct range){ 0 };
}

int ranges_copy(const struct range *range, struct range *ret_copy)
{
	const size_t size = range->num_pieces * sizeof(*range->pieces);
	struct sdma_piece *pieces = malloc(size + 1);

	if (!pieces)
		return -ENOMEM;
	memcpy(pieces, range->pieces, size);
	*ret_copy = *range;
	ret_copy->pieces = pieces;
	return 0;
}

size_t ranges_bo_of(const struct ranges *ranges, const struct sdma_piece *piece)
{
	return (size_t)((const struct import *)piece->bo - ranges->imports);
}

size_t ranges_first_bo(const struct ranges *ranges, const struct range *range)
{
	return range->num_pieces ? ranges_bo_of(ranges, &range->pieces[0]) : 0;
}

/* Adds the next BO, or as much of it as fits. */
static int add_piece(struct ranges *ranges, struct range *range)
{
	struct import *import = &ranges->imports[ranges->bo];
	uint64_t left = ranges->job->bos[ranges->bo].size - ranges->bo_offset;
	uint64_t room = ranges->range_size - range->size;
	uint64_t size = left < room ? left : room;

	if (range->num_pieces == range->max_pieces)
		return fail(ranges, -E2BIG, "divide its contents", ranges->bo);
	if (size) {
		import->users++;
		range->pieces[range->num_pieces++] = (struct sdma_piece){
			.bo = &import->bo,
			.offset = ranges->bo_offset,
			.slot_offset = ranges->contents_at + range->size,
			.size = size,
		};
	}
	range->size += size;
	ranges->bo_offset += size;
	if (size == left) {
		ranges->bo++;
		ranges->bo_offset = 0;
	}
	return 0;
}

/* Each range fills its slot except the last. */
static int next_range(struct ranges *ranges, struct range *range)
{
	int ret = 0;

	range->index = ranges->next_index++;
	range->offset = ranges->next_offset;
	range->size = 0;
	range->num_pieces = 0;
	while (!ret && ranges->bo < ranges->job->num_bos && range->size < ranges->range_size)
		ret = add_piece(ranges, range);
	ranges->next_offset += range->size;
	return ret;
}

static int import_once(struct ranges *ranges, size_t bo)
{
	struct import *import = &ranges->imports[bo];
	int ret;

	if (import->bo.bo)
		return 0;
	ret = sdma_bo_import(ranges->gpu, &ranges->job->bos[bo], &import->bo);
	if (ret < 0)
		return fail(ranges, ret,
			    ret == -ESTALE ? "the kernel has given the dma-buf of another BO"
					   : "import the dma-buf",
			    bo);
	return 0;
}

static int import_bos(struct ranges *ranges, const struct range *range)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < range->num_pieces; i++)
		ret = import_once(ranges, ranges_bo_of(ranges, &range->pieces[i]));
	return ret;
}

static bool are_left(const struct ranges *ranges)
{
	return !transfer_error_is_set(ranges->error) &&
	       (ranges->next_offset < ranges->size || !ranges->next_index);
}

bool ranges_are_left(struct ranges *ranges)
{
	bool left;

	(void)pthread_mutex_lock(&ranges->lock);
	left = are_left(ranges);
	(void)pthread_mutex_unlock(&ranges->lock);
	return left;
}

bool ranges_take(struct ranges *ranges, struct range *range)
{
	int ret = -ECANCELED;

	(void)pthread_mutex_lock(&ranges->lock);
	if (are_left(ranges))
		ret = next_range(ranges, range);
	if (!ret)
		ret = import_bos(ranges, range);
	(void)pthread_mutex_unlock(&ranges->lock);
	return !ret;
}

void ranges_finish(struct ranges *ranges, const struct range *range)
{
	(void)pthread_mutex_lock(&ranges->lock);
	for (size_t i = 0; i < range->num_pieces; i++) {
		size_t bo = ranges_bo_of(ranges, &range->pieces[i]);
		struct import *import = &ranges->imports[bo];

		if (!--import->users && bo < ranges->bo)
			sdma_bo_release(&import->bo);
	}
	(void)pthread_mutex_unlock(&ranges->lock);
}

static void add_checksum(uint64_t *checksum, const char *contents, uint64_t size, uint64_t offset)
{
	(void)__atomic_fetch_add(checksum,
				 checksum_pages(contents, size, offset / CONTENT_ALIGNMENT),
				 __ATOMIC_RELAXED);
}

void ranges_add_checksums(const struct ranges *ranges, const struct range *range,
			  const char *contents, uint64_t from, uint64_t to, uint64_t *checksums)
{
	for (size_t i = 0; i < range->num_pieces; i++) {
		const struct sdma_piece *piece = &range->pieces[i];
		uint64_t piece_at = piece->slot_offset - ranges->contents_at;
		uint64_t begin = piece_at > from ? piece_at : from;
		uint64_t end = piece_at + piece->size < to ? piece_at + piece->size : to;
		size_t bo = ranges_bo_of(ranges, piece);

		if (begin < end)
			add_checksum(&checksums[bo], contents + begin - from, end - begin,
				     piece->offset + begin - piece_at);
	}
}
