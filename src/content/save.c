// SPDX-License-Identifier: GPL-2.0-only
/* The way of a save: from the first range that a thread takes to the end of the image. */
#include "content/save.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "content/pool_part.h"
#include "content/transfer.h"

/* Files that take their bytes in order have their ranges written by the threads that copy. */
static bool uses_pool(const struct transfer *transfer)
{
	return transfer->pool && !transfer->io.in_order;
}

static bool wants_part(void *argument)
{
	return transfer_has_ranges(argument);
}

static void report_lost(struct transfer *transfer)
{
	const char *action;
	int ret = pool_lost_by(transfer->pool, &action);

	(void)transfer_fail(transfer, ret, action, 0);
}

/* The part comes before the range: all parts may be taken, and the ranges in them are written in
 * order. */
static bool take_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	if (transfer->pool && !thread->part) {
		thread->part = pool_take(transfer->pool, transfer->pool_gpu, wants_part, transfer);
		if (!thread->part && transfer_has_ranges(transfer))
			report_lost(transfer);
		if (!thread->part)
			return false;
		sdma_set_memory(transfer->gpu, thread->slot, &thread->part->bo);
	}
	return transfer_take_range(thread);
}

/* In the image, the contents of a range start IMAGE_HEADER_SIZE bytes after its offset. A range
 * also writes the bytes before it, and leaves its own last ones to the next, so writes stay
 * block-aligned. */
static int write_contents(struct transfer *transfer, const struct range *range, char *memory,
			  double *storage_s)
{
	bool is_last = range->offset + range->size == transfer->size;
	double begin = now_seconds();
	int ret = image_io_write(&transfer->io, memory - IMAGE_HEADER_SIZE, range->offset,
				 range->size + (is_last ? IMAGE_HEADER_SIZE : 0));

	*storage_s += now_seconds() - begin;
	return ret < 0 ? transfer_fail_range(transfer, range, ret, "write to the image") : 0;
}

static int write_range(struct slot_thread *thread)
{
	return write_contents(thread->transfer, &thread->range, transfer_memory(thread),
			      &thread->storage_s);
}

/* Puts the bytes of the image that end the previous range before the contents. */
static void take_bytes_before(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	char *memory = transfer_memory(thread);

	memcpy(memory - IMAGE_HEADER_SIZE, transfer->before, IMAGE_HEADER_SIZE);
	memcpy(transfer->before, memory + thread->range.size - IMAGE_HEADER_SIZE,
	       IMAGE_HEADER_SIZE);
}

static int write_in_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	int ret = transfer_await_turn(thread);

	if (ret < 0)
		return ret;
	take_bytes_before(thread);
	if (transfer->io.in_order)
		ret = write_range(thread);
	if (!ret)
		transfer_end_turn(thread);
	return ret;
}

/* A thread of the pool. */
static void write_part(struct pool_part *part)
{
	struct transfer *transfer = part->owner;
	struct range *range = &part->range;
	char *memory = part->memory + transfer_contents_at(transfer);
	double storage_s = 0;

	if (!transfer_has_stopped(transfer))
		transfer_add_checksums(transfer, range, memory, 0, range->size);
	if (!transfer_has_stopped(transfer))
		(void)write_contents(transfer, range, memory, &storage_s);
	HOLD(&transfer->lock);
	transfer->progress.done_bytes += range->size;
	transfer->progress.storage_s += storage_s;
	free(take_ptr(&range->pieces));
	if (!--transfer->unwritten)
		(void)pthread_cond_signal(&transfer->written);
}

/* With the pieces that the range has. */
static int copy_range(const struct range *range, struct range *ret_copy)
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

/* Leaves the contents of the slot to the threads of the pool. */
static int queue_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	int ret = transfer_await_turn(thread);

	if (!ret && copy_range(&thread->range, &thread->part->range) < 0)
		ret = transfer_fail_range(transfer, &thread->range, -ENOMEM, "allocate");
	if (ret < 0)
		return ret;
	take_bytes_before(thread);
	(void)pthread_mutex_lock(&transfer->lock);
	transfer->unwritten++;
	(void)pthread_mutex_unlock(&transfer->lock);
	thread->part->owner = transfer;
	pool_write(transfer->pool, take_ptr(&thread->part), write_part);
	transfer_end_turn(thread);
	return 0;
}

static int save_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	int ret = transfer_start_copy(thread, SDMA_BO_TO_SLOT);

	if (!ret)
		ret = transfer_await_copy(thread);
	if (!ret && uses_pool(transfer))
		return queue_range(thread);
	if (!ret) {
		transfer_add_checksums(transfer, &thread->range, transfer_memory(thread), 0,
				       thread->range.size);
		ret = write_in_turn(thread);
	}
	if (!ret && !transfer->io.in_order)
		ret = write_range(thread);
	return ret;
}

/* Until no range is left, or a thread has failed. */
static void save_ranges(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	while (take_range(thread) && !save_range(thread))
		transfer_end_range(thread, uses_pool(transfer) ? 0 : thread->range.size);
	if (thread->part)
		pool_give(transfer->pool, take_ptr(&thread->part));
	if (transfer->pool)
		pool_wake(transfer->pool);
}

static int begin_save(struct transfer *transfer)
{
	struct content_job *job = transfer->job;
	uint64_t length = htole64(transfer->size);
	const struct image_io_file file = {
		.fd = job->image_fd,
		.streamed = job->streamed,
		.size = IMAGE_HEADER_SIZE + transfer->size,
		.skip_zeros = transfer->plan->settings.skip_zeros,
		.num_images = transfer->plan->num_transfers,
		.chunks = &job->chunks,
	};
	int ret = image_io_begin_save(&transfer->io, &file);

	job->has_checksums = false;
	memcpy(transfer->before, &length, IMAGE_HEADER_SIZE);
	return ret < 0 ? transfer_fail(transfer, ret, "reserve room for the image", 0) : 0;
}

/* KFD's BOs are whole pages. Others have no checksums. */
static bool wants_checksums(const struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	for (size_t i = 0; i < job->num_bos; i++) {
		if (job->bos[i].size % CONTENT_ALIGNMENT)
			return false;
	}
	return transfer->plan->settings.checksum;
}

static struct slots choose_slots(struct transfer *transfer)
{
	const struct transfer_plan *plan = transfer->plan;
	const uint64_t unit = image_io_unit(&transfer->io);
	const struct slots slots =
		transfer->pool ? slots_of_parts(pool_part_size(transfer->pool), unit)
			       : slots_choose(plan->settings.staging_bytes, transfer->size,
					      plan->num_transfers, unit);

	/* Unless all contents are in one range. */
	if (slots.size % unit && slots.size < transfer->size)
		image_io_drop_chunks(&transfer->io);
	return slots;
}

void save_copy(struct transfer *transfer)
{
	if (transfer->pool)
		pool_begin_copy(transfer->pool);
	if (!begin_save(transfer))
		transfer_run(transfer, choose_slots(transfer), wants_checksums(transfer),
			     save_ranges);
	if (transfer->pool)
		pool_end_copy(transfer->pool);
}

static void await_written(struct transfer *transfer)
{
	HOLD(&transfer->lock);
	while (transfer->unwritten)
		(void)pthread_cond_wait(&transfer->written, &transfer->lock);
}

static void end_image(struct transfer *transfer)
{
	struct content_job *job = transfer->job;
	int ret = image_io_end_save(&transfer->io);

	if (!ret && job->chunks.is_used && !base_is_unchanged(job->chunks.base)) {
		(void)transfer_fail(transfer, -ESTALE, "a file of the base has changed meanwhile",
				    0);
		return;
	}
	job->has_checksums = transfer->checksums;
	for (size_t i = 0; job->has_checksums && i < job->num_bos; i++)
		job->bos[i].checksum = transfer->checksums[i];
	if (ret < 0)
		(void)transfer_fail(transfer, ret, "write to the image", job->num_bos - 1);
}

void save_finish(struct transfer *transfer)
{
	await_written(transfer);
	if (!transfer_has_stopped(transfer))
		end_image(transfer);
	transfer_end(transfer);
}
