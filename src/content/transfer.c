// SPDX-License-Identifier: GPL-2.0-only
/* Opens the GPU of a transfer, allocates what its threads need, starts and joins them, and closes
 * the GPU. ranges.c has what a thread does with a range. */
#include "content/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "amdgpu_plugin_util.h"
#include "content/pool_part.h"
#include "content/sdma.h"
#include "kernel/render_node.h"

_Static_assert(CONTENT_ALIGNMENT % IMAGE_IO_ALIGNMENT == 0, "ranges are whole blocks of the file");

/* How late the kernel may end a sleep between two polls of a fence. Its default, 50 us, is longer
 * than the copy of a slot. */
#define TIMER_SLACK_NS 1000ul

static int alloc_thread(struct transfer *transfer, unsigned int index)
{
	const struct slots *slots = &transfer->slots;
	struct slot_thread *thread = &transfer->threads[index];
	int ret;

	thread->transfer = transfer;
	thread->is_paired = slots->count > slots->threads;
	thread->slot = thread->is_paired ? 2 * index : index;
	(void)pthread_cond_init(&thread->turn, NULL);
	(void)pthread_cond_init(&thread->served, NULL);
	ret = ranges_alloc_pieces(&thread->range, slots);
	return ret < 0 || !thread->is_paired ? ret : ranges_alloc_pieces(&thread->other, slots);
}

static int alloc(struct transfer *transfer, bool checksums)
{
	const size_t num_bos = transfer->job->num_bos;
	int ret = 0;

	transfer->ranges.imports = ranges_alloc_imports(num_bos);
	transfer->threads = calloc(transfer->slots.threads, sizeof(*transfer->threads));
	if (checksums)
		transfer->checksums = calloc(num_bos + 1, sizeof(*transfer->checksums));
	if (!transfer->ranges.imports || !transfer->threads || (checksums && !transfer->checksums))
		return -ENOMEM;
	for (unsigned int i = 0; !ret && i < transfer->slots.threads; i++)
		ret = alloc_thread(transfer, i);
	return ret;
}

static int open_gpu(struct transfer *transfer)
{
	const struct slots *slots = &transfer->slots;
	uint32_t minor = transfer->job->render_minor;
	int ret = render_node_check_names();

	if (ret < 0)
		return transfer_fail(
			transfer, ret,
			"libdrm's list amdgpu.ids must be a regular file of at most 1 MiB", 0);
	ret = transfer->pool ? sdma_open_bare(minor, slots->count, slots->memory, &transfer->gpu)
			     : sdma_open(minor, slots->count, slots->memory, &transfer->gpu);
	if (ret == -ENODATA)
		return transfer_fail(transfer, ret,
				     "open the copy engine without SDMA rings (set user_queue=1)",
				     0);
	return ret < 0 ? transfer_fail(transfer, ret, "open the copy engine", 0) : 0;
}

static int set_up(struct transfer *transfer, struct slots slots, bool checksums)
{
	int ret;

	if (transfer->plan->settings->one_thread) {
		slots.count /= slots.threads;
		slots.threads = 1;
	}
	transfer->slots = slots;
	ret = alloc(transfer, checksums);
	return ret < 0 ? transfer_fail(transfer, ret, "allocate", 0) : open_gpu(transfer);
}

static void *run_thread(void *argument)
{
	struct slot_thread *thread = argument;
	struct transfer *transfer = thread->transfer;

	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	transfer->process_ranges(thread);
	/* After an error, wake the threads that wait for a turn: the turn never comes. */
	(void)pthread_mutex_lock(&transfer->lock);
	for (unsigned int i = 0; i < transfer->slots.threads; i++)
		(void)pthread_cond_signal(&transfer->threads[i].turn);
	(void)pthread_mutex_unlock(&transfer->lock);
	return NULL;
}

/* The slots of a thread that cannot be started stay unused. */
static void run_threads(struct transfer *transfer)
{
	unsigned int started = 1;
	int ret;

	while (started < transfer->slots.threads &&
	       !thread_start(&transfer->threads[started].thread, run_thread,
			     &transfer->threads[started]))
		started++;
	(void)run_thread(&transfer->threads[0]);
	for (unsigned int i = 1; i < started; i++)
		(void)pthread_join(transfer->threads[i].thread, NULL);
	if (transfer_has_stopped(transfer))
		return;
	ret = sdma_check_faults(transfer->gpu);
	if (ret < 0)
		(void)transfer_fail(transfer, ret, "a copy had a page fault", 0);
}

/* After a failure the engine may hang with copies that no thread waits for, so sdma_stop() comes
 * first. */
static void close_gpu(struct transfer *transfer)
{
	if (transfer->gpu)
		sdma_stop(transfer->gpu);
	ranges_release(transfer);
	sdma_close(transfer->gpu);
	transfer->gpu = NULL;
}

int transfer_new(struct transfer_plan *plan, struct content_job *job, uint64_t size,
		 struct transfer **ret_transfer)
{
	struct transfer *transfer = calloc(1, sizeof(*transfer));

	if (!transfer)
		return -ENOMEM;
	transfer->plan = plan;
	transfer->job = job;
	transfer->size = size;
	transfer->pool_gpu = job->pool ? pool_find_gpu(job->pool, job->render_minor) : NULL;
	transfer->pool = transfer->pool_gpu ? job->pool : NULL;
	(void)pthread_mutex_init(&transfer->lock, NULL);
	(void)pthread_mutex_init(&transfer->ranges.lock, NULL);
	(void)pthread_cond_init(&transfer->written, NULL);
	*ret_transfer = transfer;
	return 0;
}

void transfer_free(struct transfer *transfer)
{
	if (!transfer)
		return;
	(void)pthread_cond_destroy(&transfer->written);
	(void)pthread_mutex_destroy(&transfer->ranges.lock);
	(void)pthread_mutex_destroy(&transfer->lock);
	free(transfer);
}

void transfer_run(struct transfer *transfer, struct slots slots, bool checksums,
		  void (*process_ranges)(struct slot_thread *thread))
{
	transfer->process_ranges = process_ranges;
	if (!set_up(transfer, slots, checksums))
		run_threads(transfer);
	close_gpu(transfer);
}

void transfer_end(struct transfer *transfer)
{
	free(transfer->ranges.imports);
	image_io_done(&transfer->io);
	free(transfer->checksums);
	for (unsigned int i = 0; transfer->threads && i < transfer->slots.threads; i++) {
		(void)pthread_cond_destroy(&transfer->threads[i].turn);
		(void)pthread_cond_destroy(&transfer->threads[i].served);
		ranges_free_pieces(&transfer->threads[i].range);
		ranges_free_pieces(&transfer->threads[i].other);
	}
	free(transfer->threads);
	transfer->threads = NULL;
}

struct transfer_progress transfer_progress(struct transfer *transfer)
{
	struct transfer_progress progress;

	(void)pthread_mutex_lock(&transfer->lock);
	progress = transfer->progress;
	(void)pthread_mutex_unlock(&transfer->lock);
	return progress;
}
