// SPDX-License-Identifier: GPL-2.0-only
/* The way of a load: from the first range that a thread takes to the comparison of checksums. */
#include "content/load.h"

#include <errno.h>

#include "amdgpu_plugin_util.h"

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
	int ret = image_io_read(&transfer->io, steps_memory(thread) + at - before,
				thread->range.offset + at, before + size);

	thread->storage_s += now_seconds() - begin;
	return ret < 0 ? steps_fail(transfer, ret, "read from the image", steps_first_bo(thread))
		       : 0;
}

static int fetch_from_stream(struct slot_thread *thread)
{
	int ret = steps_await_turn(thread);

	if (!ret)
		ret = read_part(thread, 0, thread->range.size);
	if (ret < 0)
		return ret;
	steps_end_turn(thread);
	steps_add_checksums(thread, 0, thread->range.size);
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
		steps_add_checksums(thread, at, at + part);
		at += part;
	}
	return 0;
}

/* With a pair of slots, the range that is ended is the one before. */
static int load_range(struct slot_thread *thread)
{
	int ret = thread->transfer->job->streamed ? fetch_from_stream(thread)
						  : fetch_from_file(thread);

	if (!ret)
		ret = steps_start_copy(thread, SDMA_SLOT_TO_BO);
	if (ret < 0)
		return ret;
	if (thread->is_paired)
		steps_change_slot(thread);
	return steps_await_copy(thread);
}

/* The copy of the other slot: the last one, or the only one that still runs after an error. */
static void end_pair(struct slot_thread *thread)
{
	if (!thread->is_paired)
		return;
	steps_change_slot(thread);
	if (!steps_await_copy(thread))
		steps_finish_range(thread, thread->range.size);
}

/* Until no range is left, or a thread has failed. */
static void load_ranges(struct slot_thread *thread)
{
	while (ranges_take(&thread->transfer->ranges, &thread->range) && !load_range(thread))
		steps_finish_range(thread, thread->range.size);
	end_pair(thread);
}

static int begin_load(struct transfer *transfer)
{
	int ret = image_io_begin_load(&transfer->io, transfer->job->image_fd,
				      transfer->job->streamed, IMAGE_HEADER_SIZE + transfer->size);

	return ret < 0 ? steps_fail(transfer, ret, "read from the image", 0) : 0;
}

static void end_load(struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	if (steps_has_stopped(transfer))
		return;
	for (size_t i = 0; transfer->checksums && i < job->num_bos; i++) {
		if (transfer->checksums[i] == job->bos[i].checksum)
			continue;
		(void)steps_fail(
			transfer, -EBADMSG,
			"checksum mismatch, its contents in the image differ from those at the dump",
			i);
		return;
	}
}

const struct steps load_steps = { begin_load, load_ranges, end_load };
