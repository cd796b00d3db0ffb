// SPDX-License-Identifier: GPL-2.0-only
/* What a save and a load have in common: opens the GPU, divides its memory, and starts and joins
 * the threads. save.c and load.c have their ways through the ranges, content.c all GPUs and the
 * log. */
#include "content/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "amdgpu_plugin_util.h"
#include "content/image_io.h"
#include "content/keep_part.h"
#include "content/load.h"
#include "content/ranges.h"
#include "content/save.h"
#include "content/sdma.h"
#include "content/steps.h"
#include "image/image.h"
#include "kernel/render_node.h"

_Static_assert(CONTENT_ALIGNMENT % IMAGE_IO_ALIGNMENT == 0, "ranges are whole blocks of the file");

/* How late the kernel may end a sleep between two polls of a fence. Its default, 50 us, is longer
 * than the copy of a slot. */
#define TIMER_SLACK_NS 1000ul

static void *run_thread(void *argument)
{
	struct slot_thread *thread = argument;
	struct transfer *transfer = thread->transfer;

	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	transfer->steps->process_ranges(thread);
	/* After an error, wake the threads that wait for a turn: the turn never comes. */
	(void)pthread_mutex_lock(&transfer->lock);
	for (unsigned int i = 0; i < transfer->slots.threads; i++)
		(void)pthread_cond_signal(&transfer->threads[i].turn);
	(void)pthread_mutex_unlock(&transfer->lock);
	return NULL;
}

/* KFD's BOs are whole pages. Others have no checksums. */
static bool wants_checksums(const struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	if (!transfer->plan->settings->checksum)
		return false;
	if (!transfer->plan->save)
		return job->has_checksums;
	for (size_t i = 0; i < job->num_bos; i++) {
		if (job->bos[i].size % CONTENT_ALIGNMENT)
			return false;
	}
	return true;
}

static int alloc(struct transfer *transfer)
{
	const struct slots *slots = &transfer->slots;
	int ret = ranges_init(&transfer->ranges, transfer->job, transfer->size, slots,
			      transfer->plan->error);

	if (ret < 0)
		return ret;
	transfer->threads = calloc(slots->threads, sizeof(*transfer->threads));
	if (!transfer->threads)
		return -ENOMEM;
	for (unsigned int i = 0; i < slots->threads; i++) {
		struct slot_thread *thread = &transfer->threads[i];

		thread->transfer = transfer;
		thread->is_paired = slots->count > slots->threads;
		thread->slot = thread->is_paired ? 2 * i : i;
		(void)pthread_cond_init(&thread->turn, NULL);
		if (ranges_alloc_pieces(&thread->range, slots) < 0 ||
		    (thread->is_paired && ranges_alloc_pieces(&thread->other, slots) < 0))
			return -ENOMEM;
	}
	if (!wants_checksums(transfer))
		return 0;
	transfer->checksums = calloc(transfer->job->num_bos + 1, sizeof(*transfer->checksums));
	return transfer->checksums ? 0 : -ENOMEM;
}

static struct slots choose_staging(const struct transfer *transfer)
{
	const struct transfer_plan *plan = transfer->plan;
	const uint64_t memory = plan->settings->staging_bytes;
	struct slots slots;

	if (transfer->io.cached)
		return slots_choose_pairs(memory, transfer->size, plan->num_transfers);
	slots = slots_choose(memory, transfer->size, plan->num_transfers);
	if (plan->save)
		slots_align(&slots, image_io_unit(&transfer->io));
	return slots;
}

static struct slots choose_slots(struct transfer *transfer)
{
	const uint64_t unit = image_io_unit(&transfer->io);
	struct slots slots;

	if (transfer->keep) {
		slots = slots_of_parts(keep_part_size(transfer->keep));
		slots_align_parts(&slots, unit);
	} else {
		slots = choose_staging(transfer);
	}
	if (transfer->plan->settings->one_thread) {
		slots.count /= slots.threads;
		slots.threads = 1;
	}
	/* Unless all contents are in one range. */
	if (slots.size % unit && slots.size < transfer->size)
		image_io_drop_chunks(&transfer->io);
	return slots;
}

static int open_gpu(struct transfer *transfer)
{
	const struct slots *slots = &transfer->slots;
	uint32_t minor = transfer->job->render_minor;

	return transfer->keep ? sdma_open_bare(minor, slots->count, slots->memory, &transfer->gpu)
			      : sdma_open(minor, slots->count, slots->memory, &transfer->gpu);
}

static int set_up(struct transfer *transfer)
{
	int ret = transfer->steps->begin(transfer);

	if (ret < 0)
		return ret;
	(void)pthread_mutex_lock(&transfer->lock);
	transfer->slots = choose_slots(transfer);
	(void)pthread_mutex_unlock(&transfer->lock);
	ret = alloc(transfer);
	if (ret < 0)
		return steps_fail(transfer, ret, "allocate", 0);
	ret = render_node_check_names();
	if (ret < 0)
		return steps_fail(
			transfer, ret,
			"libdrm's list amdgpu.ids must be a regular file of at most 1 MiB", 0);
	ret = open_gpu(transfer);
	if (ret == -ENODATA)
		return steps_fail(transfer, ret,
				  "open the copy engine without SDMA rings (set user_queue=1)", 0);
	if (ret < 0)
		return steps_fail(transfer, ret, "open the copy engine", 0);
	ranges_start(&transfer->ranges, transfer->gpu, steps_contents_at(transfer));
	return 0;
}

/* After a failure the engine may hang with copies that no thread waits for, so sdma_stop() comes
 * first. */
static void close_gpu(struct transfer *transfer)
{
	if (transfer->gpu)
		sdma_stop(transfer->gpu);
	ranges_release(&transfer->ranges);
	sdma_close(transfer->gpu);
	transfer->gpu = NULL;
}

static void tear_down(struct transfer *transfer)
{
	ranges_done(&transfer->ranges);
	image_io_done(&transfer->io);
	free(transfer->checksums);
	for (unsigned int i = 0; transfer->threads && i < transfer->slots.threads; i++) {
		(void)pthread_cond_destroy(&transfer->threads[i].turn);
		ranges_free_pieces(&transfer->threads[i].range);
		ranges_free_pieces(&transfer->threads[i].other);
	}
	free(transfer->threads);
	transfer->threads = NULL;
}

/* The slots of a thread that cannot be started stay unused. */
static void run_threads(struct transfer *transfer)
{
	unsigned int started = 1;

	while (started < transfer->slots.threads &&
	       !thread_start(&transfer->threads[started].thread, run_thread,
			     &transfer->threads[started]))
		started++;
	(void)run_thread(&transfer->threads[0]);
	for (unsigned int i = 1; i < started; i++)
		(void)pthread_join(transfer->threads[i].thread, NULL);
}

static int check_faults(struct transfer *transfer)
{
	int ret = sdma_check_faults(transfer->gpu);

	return ret < 0 ? steps_fail(transfer, ret, "a copy had a page fault", 0) : 0;
}

int transfer_new(const struct transfer_plan *plan, struct content_job *job, uint64_t size,
		 struct transfer **ret_transfer)
{
	struct transfer *transfer = calloc(1, sizeof(*transfer));

	if (!transfer)
		return -ENOMEM;
	transfer->plan = plan;
	transfer->job = job;
	transfer->steps = plan->save ? &save_steps : &load_steps;
	transfer->size = size;
	transfer->kept_gpu = job->keep ? keep_find_gpu(job->keep, job->render_minor) : NULL;
	transfer->keep = transfer->kept_gpu ? job->keep : NULL;
	(void)pthread_mutex_init(&transfer->lock, NULL);
	(void)pthread_cond_init(&transfer->written, NULL);
	*ret_transfer = transfer;
	return 0;
}

void transfer_free(struct transfer *transfer)
{
	if (!transfer)
		return;
	(void)pthread_cond_destroy(&transfer->written);
	(void)pthread_mutex_destroy(&transfer->lock);
	free(transfer);
}

void transfer_copy(struct transfer *transfer)
{
	/* content_stop() may have come while this GPU waited for the limit. */
	if (steps_has_stopped(transfer))
		return;
	if (transfer->keep)
		keep_begin_copy(transfer->keep);
	if (set_up(transfer) == 0) {
		run_threads(transfer);
		if (!steps_has_stopped(transfer))
			(void)check_faults(transfer);
	}
	close_gpu(transfer);
	if (transfer->keep)
		keep_end_copy(transfer->keep);
}

void transfer_finish(struct transfer *transfer)
{
	transfer->steps->end(transfer);
	tear_down(transfer);
}

void transfer_get_progress(struct transfer *transfer, struct transfer_progress *ret_progress)
{
	(void)pthread_mutex_lock(&transfer->lock);
	*ret_progress = (struct transfer_progress){
		.done_bytes = transfer->done_bytes,
		.total_bytes = transfer->size,
		.copy_s = transfer->copy_s,
		.storage_s = transfer->storage_s,
		.num_slots = transfer->slots.count,
		.slot_size = transfer->slots.memory,
	};
	(void)pthread_mutex_unlock(&transfer->lock);
}
