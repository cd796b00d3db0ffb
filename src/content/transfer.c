// SPDX-License-Identifier: GPL-2.0-only
/* Opens the GPU, starts and joins the threads, and cuts the contents into ranges in their order,
 * whichever thread takes them. A BO is imported with the first range that has a part of it, and
 * released when the last of them is finished. A thread that finds no other at this work does it for
 * all that wait: the driver, libdrm and the caches make two threads slower than one, and so does
 * the change from one to another. */
#include "content/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/pool_part.h"
#include "kernel/render_node.h"

/* How late the kernel may end a sleep between two polls of a fence. Its default, 50 us, is longer
 * than the copy of a slot. */
#define TIMER_SLACK_NS 1000ul

/* sdma_wait() sleeps longer if the copy has not ended. */
#define SHORT_WAIT_S 20e-6

struct import {
	struct sdma_bo bo;
	/* Ranges that use the BO now. */
	unsigned int users;
};

void transfer_stop(struct transfer_plan *plan, const struct content_job *job, int ret,
		   const char *action, size_t bo)
{
	struct transfer_error *error = &plan->error;

	HOLD(&error->lock);
	if (!error->ret) {
		error->ret = ret;
		error->job = job;
		error->action = action;
		error->bo = bo;
	}
	__atomic_store_n(&error->stop, true, __ATOMIC_RELAXED);
}

int transfer_fail(const struct transfer *transfer, int ret, const char *action, size_t bo)
{
	transfer_stop(transfer->plan, transfer->job, ret, action, bo);
	return ret;
}

static size_t bo_of(const struct transfer *transfer, const struct sdma_piece *piece)
{
	return (size_t)((const struct import *)piece->bo - transfer->ranges.imports);
}

int transfer_fail_range(const struct transfer *transfer, const struct range *range, int ret,
			const char *action)
{
	return transfer_fail(transfer, ret, action,
			     range->num_pieces ? bo_of(transfer, &range->pieces[0]) : 0);
}

bool transfer_has_stopped(const struct transfer *transfer)
{
	return __atomic_load_n(&transfer->plan->error.stop, __ATOMIC_RELAXED);
}

static int alloc_thread(struct transfer *transfer, unsigned int index)
{
	const size_t pieces = SDMA_SLOT_PIECES(transfer->slots.memory);
	struct slot_thread *thread = &transfer->threads[index];

	thread->transfer = transfer;
	thread->is_paired = transfer->slots.count > transfer->slots.threads;
	thread->slot = thread->is_paired ? 2 * index : index;
	(void)pthread_cond_init(&thread->turn, NULL);
	(void)pthread_cond_init(&thread->served, NULL);
	thread->range.pieces = calloc(pieces, sizeof(*thread->range.pieces));
	if (thread->is_paired)
		thread->other.pieces = calloc(pieces, sizeof(*thread->other.pieces));
	return thread->range.pieces && (thread->other.pieces || !thread->is_paired) ? 0 : -ENOMEM;
}

static int alloc(struct transfer *transfer, bool checksums)
{
	const size_t num_bos = transfer->job->num_bos;
	int ret = 0;

	transfer->ranges.imports = calloc(num_bos + 1, sizeof(*transfer->ranges.imports));
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

	if (transfer->plan->settings.one_thread) {
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
	HOLD(&transfer->lock);
	for (unsigned int i = 0; i < transfer->slots.threads; i++)
		(void)pthread_cond_signal(&transfer->threads[i].turn);
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
	for (size_t i = 0; transfer->ranges.imports && i < transfer->job->num_bos; i++)
		sdma_bo_release(&transfer->ranges.imports[i].bo);
	sdma_close(transfer->gpu);
	transfer->gpu = NULL;
}

void transfer_init(struct transfer *transfer, struct transfer_plan *plan, struct content_job *job,
		   uint64_t size)
{
	transfer->plan = plan;
	transfer->job = job;
	transfer->size = size;
	transfer->pool_gpu = job->pool ? pool_find_gpu(job->pool, job->render_minor) : NULL;
	transfer->pool = transfer->pool_gpu ? job->pool : NULL;
	(void)pthread_mutex_init(&transfer->lock, NULL);
	(void)pthread_mutex_init(&transfer->ranges.lock, NULL);
	(void)pthread_cond_init(&transfer->written, NULL);
}

void transfer_done(struct transfer *transfer)
{
	(void)pthread_cond_destroy(&transfer->written);
	(void)pthread_mutex_destroy(&transfer->ranges.lock);
	(void)pthread_mutex_destroy(&transfer->lock);
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
		free(transfer->threads[i].range.pieces);
		free(transfer->threads[i].other.pieces);
	}
	free(transfer->threads);
	transfer->threads = NULL;
}

struct transfer_progress transfer_progress(struct transfer *transfer)
{
	HOLD(&transfer->lock);
	return transfer->progress;
}

/* Adds the next BO, or as much of it as fits. */
static int add_piece(struct transfer *transfer, struct range *range)
{
	struct ranges *ranges = &transfer->ranges;
	struct import *import = &ranges->imports[ranges->bo];
	uint64_t left = transfer->job->bos[ranges->bo].size - ranges->bo_offset;
	uint64_t room = transfer->slots.size - range->size;
	uint64_t size = left < room ? left : room;

	if (range->num_pieces == SDMA_SLOT_PIECES(transfer->slots.memory))
		return transfer_fail(transfer, -E2BIG, "divide its contents", ranges->bo);
	if (size) {
		import->users++;
		range->pieces[range->num_pieces++] = (struct sdma_piece){
			.bo = &import->bo,
			.offset = ranges->bo_offset,
			.slot_offset = transfer_contents_at(transfer) + range->size,
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

bool transfer_has_ranges(struct transfer *transfer)
{
	HOLD(&transfer->ranges.lock);
	return are_left(transfer);
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

bool transfer_take_range(struct slot_thread *thread)
{
	struct ranges *ranges = &thread->transfer->ranges;

	HOLD(&ranges->lock);
	thread->wants_range = true;
	if (!ranges->has_server)
		serve_all(thread);
	while (thread->wants_range)
		(void)pthread_cond_wait(&thread->served, &ranges->lock);
	return thread->has_range;
}

uint64_t transfer_contents_at(const struct transfer *transfer)
{
	return SLOT_MARGIN + image_io_shift(&transfer->io);
}

char *transfer_memory(const struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	char *memory =
		thread->part ? thread->part->memory : sdma_slot_memory(transfer->gpu, thread->slot);

	return memory + transfer_contents_at(transfer);
}

int transfer_start_copy(struct slot_thread *thread, enum sdma_direction direction)
{
	struct transfer *transfer = thread->transfer;
	struct range *range = &thread->range;
	int ret;

	if (!range->num_pieces)
		return 0;
	range->copy_begin = now_seconds();
	ret = sdma_submit(transfer->gpu, thread->slot, direction, range->pieces, range->num_pieces);
	return ret < 0 ? transfer_fail_range(transfer, range, ret, "start a copy") : 0;
}

int transfer_await_copy(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	double begin = now_seconds(), end;
	const char *action;
	int ret;

	ret = sdma_wait(transfer->gpu, thread->slot, transfer->plan->settings.copy_timeout_s);
	end = now_seconds();
	/* When a copy ended that the thread has not waited for is not known. */
	if (end - begin > SHORT_WAIT_S)
		thread->copy_s += end - thread->range.copy_begin;
	if (!ret)
		return 0;
	action = ret == -ETIME ? "a copy does not finish" : "wait for a copy";
	if (thread->part && sdma_is_busy(transfer->gpu, thread->slot))
		pool_lose(transfer->pool, ret, action);
	return transfer_fail_range(transfer, &thread->range, ret, action);
}

static void add_checksum(uint64_t *checksum, const char *contents, uint64_t size, uint64_t offset)
{
	(void)__atomic_fetch_add(checksum,
				 checksum_pages(contents, size, offset / CONTENT_ALIGNMENT),
				 __ATOMIC_RELAXED);
}

void transfer_add_checksums(const struct transfer *transfer, const struct range *range,
			    const char *contents, uint64_t from, uint64_t to)
{
	for (size_t i = 0; transfer->checksums && i < range->num_pieces; i++) {
		const struct sdma_piece *piece = &range->pieces[i];
		uint64_t piece_at = piece->slot_offset - transfer_contents_at(transfer);
		uint64_t begin = piece_at > from ? piece_at : from;
		uint64_t end = piece_at + piece->size < to ? piece_at + piece->size : to;

		if (begin < end)
			add_checksum(&transfer->checksums[bo_of(transfer, piece)],
				     contents + begin - from, end - begin,
				     piece->offset + begin - piece_at);
	}
}

int transfer_await_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	HOLD(&transfer->lock);
	thread->awaited = thread->range.index;
	while (transfer->turns != thread->awaited && !transfer_has_stopped(transfer))
		(void)pthread_cond_wait(&thread->turn, &transfer->lock);
	return transfer_has_stopped(transfer) ? -ECANCELED : 0;
}

void transfer_end_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	HOLD(&transfer->lock);
	transfer->turns++;
	for (unsigned int i = 0; i < transfer->slots.threads; i++) {
		if (transfer->threads[i].awaited == transfer->turns)
			(void)pthread_cond_signal(&transfer->threads[i].turn);
	}
}

void transfer_end_range(struct slot_thread *thread, uint64_t done_bytes)
{
	struct transfer *transfer = thread->transfer;

	HOLD(&transfer->lock);
	transfer->progress.done_bytes += done_bytes;
	transfer->progress.copy_s += thread->copy_s;
	transfer->progress.storage_s += thread->storage_s;
	thread->copy_s = thread->storage_s = 0;
}
