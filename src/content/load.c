// SPDX-License-Identifier: GPL-2.0-only
#include "content/load.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "storage/uncached_copy.h"

/* The ways to read a range of a file into a slot. */
enum {
	READ_TO_SLOT,
	/* 64 KiB at a time into a buffer of the thread, which stays in the cache. From there, the
	 * parts are copied past the caches. */
	READ_NEARBY,
};
#define NEARBY_SIZE (64u << 10)
/* For each GPU. The engine copies ranges in order, so the time of a range includes the copies of
 * earlier ones, up to one of each slot. Most of these should have been read in the same way. */
#define READS_IN_ONE_WAY 32u

static int read_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	const struct range *range = &thread->range;
	/* A file is read from a whole page on. A stream is already there. */
	uint64_t before = transfer->job->streamed ? 0 : IMAGE_HEADER_SIZE;
	double begin = now_seconds();
	int ret = image_io_read(&transfer->io, steps_memory(thread) - before, range->offset,
				before + range->size);

	thread->storage_s += now_seconds() - begin;
	return ret < 0 ? steps_fail(transfer, ret, "read from the image", steps_first_bo(thread))
		       : 0;
}

static int read_part_nearby(struct slot_thread *thread, uint64_t at, uint64_t size)
{
	struct transfer *transfer = thread->transfer;
	char *contents = thread->nearby + CONTENT_ALIGNMENT;
	double begin = now_seconds();
	int ret = image_io_read(&transfer->io, contents - IMAGE_HEADER_SIZE,
				thread->range.offset + at, IMAGE_HEADER_SIZE + size);

	thread->storage_s += now_seconds() - begin;
	if (ret < 0)
		return steps_fail(transfer, ret, "read from the image", steps_first_bo(thread));
	steps_add_checksums_of(thread, contents, at, at + size);
	uncached_copy_bytes(steps_memory(thread) + at, contents, size);
	return 0;
}

/* Reads the range and adds its checksums. */
static int fetch_nearby(struct slot_thread *thread)
{
	uint64_t at = 0;
	int ret = 0;

	while (!ret && at < thread->range.size) {
		uint64_t left = thread->range.size - at;
		uint64_t size = left < NEARBY_SIZE ? left : NEARBY_SIZE;

		ret = read_part_nearby(thread, at, size);
		at += size;
	}
	uncached_copy_end();
	return ret;
}

static int read_in_turn(struct slot_thread *thread)
{
	int ret = steps_await_turn(thread);

	if (!ret)
		ret = read_range(thread);
	if (!ret)
		steps_end_turn(thread);
	return ret;
}

static int fetch_to_slot(struct slot_thread *thread)
{
	int ret = thread->transfer->job->streamed ? read_in_turn(thread) : read_range(thread);

	if (!ret)
		steps_add_checksums(thread);
	return ret;
}

/* The time of a range ends with its copy, which depends on the way that the engine's source was
 * written. */
static int load_range(struct slot_thread *thread)
{
	struct trial *trial = thread->transfer->plan->trial;
	uint64_t size = thread->range.size;
	unsigned int way = thread->nearby ? trial_choose(trial, size) : READ_TO_SLOT;
	double begin = now_seconds();
	int ret = way == READ_NEARBY ? fetch_nearby(thread) : fetch_to_slot(thread);

	if (!ret)
		ret = steps_copy(thread, SDMA_SLOT_TO_BO);
	if (!ret && thread->nearby)
		trial_note(trial, way, now_seconds() - begin, size);
	return ret;
}

/* Direct reads leave nothing in the caches. Streams need whole ranges. */
static int alloc_nearby(struct transfer *transfer)
{
	if (!transfer->plan->trial->useful || !image_io_copies(&transfer->io))
		return 0;
	for (unsigned int i = 0; i < transfer->slots.count; i++) {
		struct slot_thread *thread = &transfer->threads[i];

		thread->nearby = aligned_alloc(CONTENT_ALIGNMENT, CONTENT_ALIGNMENT + NEARBY_SIZE);
		if (!thread->nearby)
			return steps_fail(transfer, -ENOMEM, "allocate", 0);
	}
	return 0;
}

static int begin_load(struct transfer *transfer)
{
	int ret = image_io_begin_load(&transfer->io, transfer->job->image_fd,
				      transfer->job->streamed, IMAGE_HEADER_SIZE + transfer->size);

	return ret < 0 ? steps_fail(transfer, ret, "read from the image", 0)
		       : alloc_nearby(transfer);
}

static int end_load(struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	for (size_t i = 0; transfer->checksums && i < job->num_bos; i++) {
		if (transfer->checksums[i] != job->bos[i].checksum)
			return steps_fail(
				transfer, -EBADMSG,
				"checksum mismatch, its contents in the image differ from those"
				" at the dump",
				i);
	}
	return 0;
}

void load_init_trial(struct trial *trial, size_t num_transfers)
{
	trial_init(trial, uncached_copy_exists(), READS_IN_ONE_WAY * (unsigned int)num_transfers);
}

const struct steps load_steps = { begin_load, load_range, end_load };
