// SPDX-License-Identifier: GPL-2.0-only
/* Cuts the contents into ranges in their order, whichever thread takes them. A BO is imported with
 * the first range that has a part of it, and released when the last of them is finished. A thread
 * that finds no other at this work does it for all that wait: the driver, libdrm and the caches
 * make two threads slower than one, and so does the change from one to another. */
#include "content/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/pool_part.h"
#include "content/transfer.h"

/* sdma_wait() sleeps longer if the copy has not ended. */
#define SHORT_WAIT_S 20e-6

struct import {
	struct sdma_bo bo;
	/* Ranges that use the BO now. */
	unsigned int users;
};

struct import *ranges_alloc_imports(size_t num_bos)
{
	return calloc(num_bos + 1, sizeof(struct import));
}

void ranges_release(struct transfer *transfer)
{
	for (size_t i = 0; transfer->ranges.imports && i < transfer->job->num_bos; i++)
		sdma_bo_release(&transfer->ranges.imports[i].bo);
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

static size_t bo_of(const struct transfer *transfer, const struct sdma_piece *piece)
{
	return (size_t)((const struct import *)piece->bo - transfer->ranges.imports);
}

size_t ranges_first_bo(const struct transfer *transfer, const struct range *range)
{
	return range->num_pieces ? bo_of(transfer, &range->pieces[0]) : 0;
}

/* Adds the next BO, or as much of it as fits. */
static int add_piece(struct transfer *transfer, struct range *range)
{
	struct ranges *ranges = &transfer->ranges;
	struct import *import = &ranges->imports[ranges->bo];
	uint64_t left = transfer->job->bos[ranges->bo].size - ranges->bo_offset;
	uint64_t room = transfer->slots.size - range->size;
	uint64_t size = left < room ? left : room;

	if (range->num_pieces == range->max_pieces)
		return transfer_fail(transfer, -E2BIG, "divide its contents", ranges->bo);
	if (size) {
		import->users++;
		range->pieces[range->num_pieces++] = (struct sdma_piece){
			.bo = &import->bo,
			.offset = ranges->bo_offset,
			.slot_offset = ranges_contents_at(transfer) + range->size,
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
static int next_range(struct transfer *transfer, struct range *range)
{
	struct ranges *ranges = &transfer->ranges;
	int ret = 0;

	range->index = ranges->next_index++;
	range->offset = ranges->next_offset;
	range->size = 0;
	range->num_pieces = 0;
	while (!ret && ranges->bo < transfer->job->num_bos && range->size < transfer->slots.size)
		ret = add_piece(transfer, range);
	ranges->next_offset += range->size;
	return ret;
}

static int import_once(struct transfer *transfer, size_t bo)
{
	struct import *import = &transfer->ranges.imports[bo];
	int ret;

	if (import->bo.bo)
		return 0;
	ret = sdma_bo_import(transfer->gpu, &transfer->job->bos[bo], &import->bo);
	if (ret < 0)
		return transfer_fail(transfer, ret,
				     ret == -ESTALE
					     ? "the kernel has given the dma-buf of another BO"
					     : "import the dma-buf",
				     bo);
	return 0;
}

static int import_bos(struct transfer *transfer, const struct range *range)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < range->num_pieces; i++)
		ret = import_once(transfer, bo_of(transfer, &range->pieces[i]));
	return ret;
}

static bool are_left(const struct transfer *transfer)
{
	return !transfer_has_stopped(transfer) &&
	       (transfer->ranges.next_offset < transfer->size || !transfer->ranges.next_index);
}

bool ranges_are_left(struct transfer *transfer)
{
	bool left;

	(void)pthread_mutex_lock(&transfer->ranges.lock);
	left = are_left(transfer);
	(void)pthread_mutex_unlock(&transfer->ranges.lock);
	return left;
}

static void release_bos(struct transfer *transfer, struct range *range)
{
	struct ranges *ranges = &transfer->ranges;

	for (size_t i = 0; i < range->num_pieces; i++) {
		size_t bo = bo_of(transfer, &range->pieces[i]);
		struct import *import = &ranges->imports[bo];

		if (!--import->users && bo < ranges->bo)
			sdma_bo_release(&import->bo);
	}
	range->num_pieces = 0;
}

/* Called with the lock, which this function releases while it calls the driver. Only the thread
 * that serves calls it. */
static int serve(struct transfer *transfer, struct range *range)
{
	int ret = -ECANCELED;

	(void)pthread_mutex_unlock(&transfer->ranges.lock);
	release_bos(transfer, range);
	(void)pthread_mutex_lock(&transfer->ranges.lock);
	if (are_left(transfer))
		ret = next_range(transfer, range);
	if (ret < 0)
		return ret;
	(void)pthread_mutex_unlock(&transfer->ranges.lock);
	ret = import_bos(transfer, range);
	(void)pthread_mutex_lock(&transfer->ranges.lock);
	return ret;
}

/* The next thread after @last that waits for a range, @last itself at the end. Or NULL. */
static struct slot_thread *find_waiting(struct transfer *transfer, const struct slot_thread *last)
{
	const size_t count = transfer->slots.threads, from = (size_t)(last - transfer->threads) + 1;

	for (size_t i = 0; i < count; i++) {
		struct slot_thread *thread = &transfer->threads[(from + i) % count];

		if (thread->wants_range)
			return thread;
	}
	return NULL;
}

/* Serves all threads that wait, and those that come meanwhile. Called with the lock. */
static void serve_all(struct slot_thread *server)
{
	struct transfer *transfer = server->transfer;
	struct slot_thread *thread = server;

	transfer->ranges.has_server = true;
	while ((thread = find_waiting(transfer, thread))) {
		thread->has_range = !serve(transfer, &thread->range);
		thread->wants_range = false;
		(void)pthread_cond_signal(&thread->served);
	}
	transfer->ranges.has_server = false;
}

bool ranges_take(struct slot_thread *thread)
{
	struct ranges *ranges = &thread->transfer->ranges;

	(void)pthread_mutex_lock(&ranges->lock);
	thread->wants_range = true;
	if (!ranges->has_server)
		serve_all(thread);
	while (thread->wants_range)
		(void)pthread_cond_wait(&thread->served, &ranges->lock);
	(void)pthread_mutex_unlock(&ranges->lock);
	return thread->has_range;
}

uint64_t ranges_contents_at(const struct transfer *transfer)
{
	return SLOT_MARGIN + image_io_shift(&transfer->io);
}

char *ranges_memory(const struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	char *memory =
		thread->part ? thread->part->memory : sdma_slot_memory(transfer->gpu, thread->slot);

	return memory + ranges_contents_at(transfer);
}

int ranges_start_copy(struct slot_thread *thread, enum sdma_direction direction)
{
	struct transfer *transfer = thread->transfer;
	struct range *range = &thread->range;
	int ret;

	if (!range->num_pieces)
		return 0;
	range->copy_begin = now_seconds();
	ret = sdma_submit(transfer->gpu, thread->slot, direction, range->pieces, range->num_pieces);
	return ret < 0 ? transfer_fail(transfer, ret, "start a copy",
				       ranges_first_bo(transfer, range))
		       : 0;
}

int ranges_await_copy(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	double begin = now_seconds(), end;
	const char *action;
	int ret;

	ret = sdma_wait(transfer->gpu, thread->slot, transfer->plan->settings->copy_timeout_s);
	end = now_seconds();
	/* When a copy ended that the thread has not waited for is not known. */
	if (end - begin > SHORT_WAIT_S)
		thread->copy_s += end - thread->range.copy_begin;
	if (!ret)
		return 0;
	action = ret == -ETIME ? "a copy does not finish" : "wait for a copy";
	if (thread->part && sdma_is_busy(transfer->gpu, thread->slot))
		pool_lose(transfer->pool, ret, action);
	return transfer_fail(transfer, ret, action, ranges_first_bo(transfer, &thread->range));
}

static void add_checksum(uint64_t *checksum, const char *contents, uint64_t size, uint64_t offset)
{
	(void)__atomic_fetch_add(checksum,
				 checksum_pages(contents, size, offset / CONTENT_ALIGNMENT),
				 __ATOMIC_RELAXED);
}

void ranges_add_checksums(const struct transfer *transfer, const struct range *range,
			  const char *contents, uint64_t from, uint64_t to)
{
	for (size_t i = 0; transfer->checksums && i < range->num_pieces; i++) {
		const struct sdma_piece *piece = &range->pieces[i];
		uint64_t piece_at = piece->slot_offset - ranges_contents_at(transfer);
		uint64_t begin = piece_at > from ? piece_at : from;
		uint64_t end = piece_at + piece->size < to ? piece_at + piece->size : to;

		if (begin < end)
			add_checksum(&transfer->checksums[bo_of(transfer, piece)],
				     contents + begin - from, end - begin,
				     piece->offset + begin - piece_at);
	}
}

int ranges_await_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	thread->awaited = thread->range.index;
	while (transfer->turns != thread->awaited && !transfer_has_stopped(transfer))
		(void)pthread_cond_wait(&thread->turn, &transfer->lock);
	(void)pthread_mutex_unlock(&transfer->lock);
	return transfer_has_stopped(transfer) ? -ECANCELED : 0;
}

void ranges_end_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	transfer->turns++;
	for (unsigned int i = 0; i < transfer->slots.threads; i++) {
		if (transfer->threads[i].awaited == transfer->turns)
			(void)pthread_cond_signal(&transfer->threads[i].turn);
	}
	(void)pthread_mutex_unlock(&transfer->lock);
}

void ranges_finish(struct slot_thread *thread, uint64_t done_bytes)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	transfer->progress.done_bytes += done_bytes;
	transfer->progress.copy_s += thread->copy_s;
	transfer->progress.storage_s += thread->storage_s;
	(void)pthread_mutex_unlock(&transfer->lock);
	thread->copy_s = thread->storage_s = 0;
}
