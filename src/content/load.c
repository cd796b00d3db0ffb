// SPDX-License-Identifier: GPL-2.0-only
/* The way of a load: from the first range that a thread takes to the comparison of checksums. */
#include "content/load.h"

#include <errno.h>

#include "amdgpu_plugin_util.h"
#include "content/transfer.h"

/* From the page cache, a range is read in such parts, and each part gets its checksums while the
 * caches of the processor still have it. */
#define PART_SIZE (256u << 10)

/* The bytes [at, at + size) of the range. */
static int read_part(struct slot_thread *thread, uint64_t at, uint64_t size)
{
	struct transfer *transfer = thread->transfer;
	/* A file is read from a whole page on. A stream is already there. */
	uint64_t before = transfer->job->streamed ? 0 : IMAGE_HEADER_SIZE;
	double begin = now_seconds();
	int ret = image_io_read(&transfer->io, transfer_memory(thread) + at - before,
				thread->range.offset + at, before + size);

	thread->storage_s += now_seconds() - begin;
	return ret < 0 ? transfer_fail_range(transfer, &thread->range, ret, "read from the image")
		       : 0;
}

static int fetch_from_stream(struct slot_thread *thread)
{
	int ret = transfer_await_turn(thread);

	if (!ret)
		ret = read_part(thread, 0, thread->range.size);
	if (ret < 0)
		return ret;
	transfer_end_turn(thread);
	transfer_add_checksums(thread->transfer, &thread->range, transfer_memory(thread), 0,
			       thread->range.size);
	return 0;
}

static int fetch_from_file(struct slot_thread *thread)
{
	uint64_t size = thread->range.size, at = 0;
	uint64_t most = thread->transfer->io.cached ? PART_SIZE : size;

	while (at < size) {
		uint64_t part = size - at < most ? size - at : most;
		int ret = read_part(thread, at, part);

		if (ret < 0)
			return ret;
		transfer_add_checksums(thread->transfer, &thread->range,
				       transfer_memory(thread) + at, at, at + part);
		at += part;
	}
	return 0;
}

/* Goes on in the other slot of a pair. */
static void change_slot(struct slot_thread *thread)
{
	struct range range = thread->range;

	thread->range = thread->other;
	thread->other = range;
	thread->slot ^= 1;
}

/* With a pair of slots, the range that is ended is the one before. */
static int load_range(struct slot_thread *thread)
{
	int ret = thread->transfer->job->streamed ? fetch_from_stream(thread)
						  : fetch_from_file(thread);

	if (!ret)
		ret = transfer_start_copy(thread, SDMA_SLOT_TO_BO);
	if (ret < 0)
		return ret;
	if (thread->is_paired)
		change_slot(thread);
	return transfer_await_copy(thread);
}

/* The copy of the other slot: the last one, or the only one that still runs after an error. */
static void end_pair(struct slot_thread *thread)
{
	if (!thread->is_paired)
		return;
	change_slot(thread);
	if (!transfer_await_copy(thread))
		transfer_end_range(thread, thread->range.size);
}

/* Until no range is left, or a thread has failed. */
static void load_ranges(struct slot_thread *thread)
{
	while (transfer_take_range(thread) && !load_range(thread))
		transfer_end_range(thread, thread->range.size);
	end_pair(thread);
}

void load_copy(struct transfer *transfer)
{
	const struct content_settings *settings = &transfer->plan->settings;
	const struct content_job *job = transfer->job;
	const size_t num_transfers = transfer->plan->num_transfers;
	int ret;

	ret = image_io_begin_load(&transfer->io, job->image_fd, job->streamed,
				  IMAGE_HEADER_SIZE + transfer->size);
	if (ret < 0) {
		(void)transfer_fail(transfer, ret, "read from the image", 0);
		return;
	}
	transfer_run(
		transfer,
		transfer->io.cached
			? slots_choose_pairs(settings->staging_bytes, transfer->size, num_transfers)
			: slots_choose(settings->staging_bytes, transfer->size, num_transfers, 1),
		settings->checksum && job->has_checksums, load_ranges);
}

static void compare_checksums(const struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	for (size_t i = 0; transfer->checksums && i < job->num_bos; i++) {
		if (transfer->checksums[i] == job->bos[i].checksum)
			continue;
		(void)transfer_fail(
			transfer, -EBADMSG,
			"checksum mismatch, its contents in the image differ from those at the dump",
			i);
		return;
	}
}

void load_finish(struct transfer *transfer)
{
	if (!transfer_has_stopped(transfer))
		compare_checksums(transfer);
	transfer_end(transfer);
}
