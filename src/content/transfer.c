// SPDX-License-Identifier: GPL-2.0-only
/* Copies the contents of one GPU's BOs to or from an image: the thread of a slot takes a range
 * after the other and processes its steps. content_save() and content_load() handle all GPUs and
 * the log.
 */
#include "content/transfer.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/ranges.h"
#include "content/sdma.h"
#include "content/slots.h"
#include "image/image.h"
#include "kernel/render_node.h"
#include "storage/image_io.h"
#include "storage/uncached_copy.h"

_Static_assert(CONTENT_ALIGNMENT % IMAGE_IO_ALIGNMENT == 0, "ranges are whole blocks of the file");

/* How late the kernel may end a sleep between two polls of a fence. Its default, 50 us, is longer
 * than the copy of a slot. */
#define TIMER_SLACK_NS 1000ul

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

/* A slot and the thread that processes ranges in it. */
struct slot_thread {
	struct transfer *transfer;
	unsigned int slot;
	pthread_t thread;
	/* Signals the turn of the range, or the error of another thread. */
	pthread_cond_t turn;
	/* Under the transfer's lock: the range whose turn the thread awaits, or awaited last. */
	uint64_t awaited;
	struct range range;
	/* NULL if ranges are read to the slot. A page, whose last bytes are before the contents,
	 * and NEARBY_SIZE bytes of contents. */
	char *nearby;
	double copy_s;
	double storage_s;
};

struct transfer {
	const struct transfer_plan *plan;
	struct content_job *job;
	const struct steps *steps;
	struct sdma *gpu;
	struct image_io io;
	/* For each BO the sum of the parts so far, or NULL if checksums are off. */
	uint64_t *checksums;
	struct slots slots;
	struct ranges ranges;
	struct slot_thread *threads;
	/* The bytes of all BOs. */
	uint64_t size;
	/* Guards the fields below. */
	pthread_mutex_t lock;
	/* The number of ranges whose turn has ended. */
	uint64_t turns;
	/* The bytes of the image before the next range that has a turn. */
	char before[IMAGE_HEADER_SIZE];
	uint64_t done_bytes;
	double copy_s;
	double storage_s;
};

/* The steps that differ between the two directions. */
struct steps {
	int (*begin)(struct transfer *transfer);
	int (*process_range)(struct slot_thread *thread);
	int (*end)(struct transfer *transfer);
};

static int fail(const struct transfer *transfer, int ret, const char *action, size_t bo)
{
	transfer_error_set(transfer->plan->error, transfer->job, ret, action, bo);
	return ret;
}

static bool has_stopped(const struct transfer *transfer)
{
	return transfer_error_is_set(transfer->plan->error);
}

/* For messages. */
static size_t first_bo(const struct slot_thread *thread)
{
	return ranges_first_bo(&thread->transfer->ranges, &thread->range);
}

/* Where the contents start in a slot. */
static uint64_t contents_at(const struct transfer *transfer)
{
	return SLOT_MARGIN + image_io_shift(&transfer->io);
}

static char *range_memory(const struct slot_thread *thread)
{
	const struct transfer *transfer = thread->transfer;

	return (char *)sdma_slot_memory(transfer->gpu, thread->slot) + contents_at(transfer);
}

/* Adds the range to the progress. */
static void count_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	transfer->done_bytes += thread->range.size;
	transfer->copy_s += thread->copy_s;
	transfer->storage_s += thread->storage_s;
	(void)pthread_mutex_unlock(&transfer->lock);
	thread->copy_s = thread->storage_s = 0;
}

static int copy(struct slot_thread *thread, enum sdma_direction direction)
{
	struct transfer *transfer = thread->transfer;
	const struct range *range = &thread->range;
	double begin = now_seconds();
	int ret;

	if (!range->num_pieces)
		return 0;
	ret = sdma_submit(transfer->gpu, thread->slot, direction, range->pieces, range->num_pieces);
	if (ret < 0)
		return fail(transfer, ret, "start a copy", first_bo(thread));
	ret = sdma_wait(transfer->gpu, thread->slot, transfer->plan->settings->copy_timeout_s);
	thread->copy_s += now_seconds() - begin;
	if (ret == -ETIME)
		return fail(transfer, ret, "a copy does not finish", first_bo(thread));
	return ret < 0 ? fail(transfer, ret, "wait for a copy", first_bo(thread)) : 0;
}

/* In the image, the contents of a range start IMAGE_HEADER_SIZE bytes after its offset. It writes
 * the bytes before them instead of its own last ones, which the next range writes. */
static int write_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	const struct range *range = &thread->range;
	bool is_last = range->offset + range->size == transfer->size;
	double begin = now_seconds();
	int ret = image_io_write(&transfer->io, range_memory(thread) - IMAGE_HEADER_SIZE,
				 range->offset, range->size + (is_last ? IMAGE_HEADER_SIZE : 0));

	thread->storage_s += now_seconds() - begin;
	return ret < 0 ? fail(transfer, ret, "write to the image", first_bo(thread)) : 0;
}

static int read_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	const struct range *range = &thread->range;
	/* A file is read from a whole page on. A stream is already there. */
	uint64_t before = transfer->job->streamed ? 0 : IMAGE_HEADER_SIZE;
	double begin = now_seconds();
	int ret = image_io_read(&transfer->io, range_memory(thread) - before, range->offset,
				before + range->size);

	thread->storage_s += now_seconds() - begin;
	return ret < 0 ? fail(transfer, ret, "read from the image", first_bo(thread)) : 0;
}

/* Adds @size bytes at @offset of a BO. Other threads may add other parts of it. */
static void add_checksum(uint64_t *checksum, const char *contents, uint64_t size, uint64_t offset)
{
	(void)__atomic_fetch_add(checksum,
				 checksum_pages(contents, size, offset / CONTENT_ALIGNMENT),
				 __ATOMIC_RELAXED);
}

/* Adds bytes [from, to) of the range, which are at @contents. */
static void add_checksums_of(struct slot_thread *thread, const char *contents, uint64_t from,
			     uint64_t to)
{
	struct transfer *transfer = thread->transfer;
	const struct range *range = &thread->range;

	for (size_t i = 0; transfer->checksums && i < range->num_pieces; i++) {
		const struct sdma_piece *piece = &range->pieces[i];
		uint64_t piece_at = piece->slot_offset - contents_at(transfer);
		uint64_t begin = piece_at > from ? piece_at : from;
		uint64_t end = piece_at + piece->size < to ? piece_at + piece->size : to;
		size_t bo = ranges_bo_of(&transfer->ranges, piece);

		if (begin < end)
			add_checksum(&transfer->checksums[bo], contents + begin - from, end - begin,
				     piece->offset + begin - piece_at);
	}
}

static void add_checksums(struct slot_thread *thread)
{
	add_checksums_of(thread, range_memory(thread), 0, thread->range.size);
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
		return fail(transfer, ret, "read from the image", first_bo(thread));
	add_checksums_of(thread, contents, at, at + size);
	uncached_copy_bytes(range_memory(thread) + at, contents, size);
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

/* Waits until the turns of all earlier ranges have ended. */
static int await_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	thread->awaited = thread->range.index;
	while (transfer->turns != thread->awaited && !has_stopped(transfer))
		(void)pthread_cond_wait(&thread->turn, &transfer->lock);
	(void)pthread_mutex_unlock(&transfer->lock);
	return has_stopped(transfer) ? -ECANCELED : 0;
}

static void end_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	transfer->turns++;
	for (unsigned int i = 0; i < transfer->slots.count; i++) {
		if (transfer->threads[i].awaited == transfer->turns)
			(void)pthread_cond_signal(&transfer->threads[i].turn);
	}
	(void)pthread_mutex_unlock(&transfer->lock);
}

/* Puts the bytes of the image that end the previous range before the contents. */
static void take_bytes_before(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	char *memory = range_memory(thread);

	memcpy(memory - IMAGE_HEADER_SIZE, transfer->before, IMAGE_HEADER_SIZE);
	memcpy(transfer->before, memory + thread->range.size - IMAGE_HEADER_SIZE,
	       IMAGE_HEADER_SIZE);
}

static int write_in_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	int ret = await_turn(thread);

	if (ret < 0)
		return ret;
	take_bytes_before(thread);
	if (transfer->io.in_order)
		ret = write_range(thread);
	if (!ret)
		end_turn(thread);
	return ret;
}

static int read_in_turn(struct slot_thread *thread)
{
	int ret = await_turn(thread);

	if (!ret)
		ret = read_range(thread);
	if (!ret)
		end_turn(thread);
	return ret;
}

static int save_range(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	int ret = copy(thread, SDMA_BO_TO_SLOT);

	if (!ret) {
		add_checksums(thread);
		ret = write_in_turn(thread);
	}
	if (!ret && !transfer->io.in_order)
		ret = write_range(thread);
	return ret;
}

static int fetch_to_slot(struct slot_thread *thread)
{
	int ret = thread->transfer->job->streamed ? read_in_turn(thread) : read_range(thread);

	if (!ret)
		add_checksums(thread);
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
		ret = copy(thread, SDMA_SLOT_TO_BO);
	if (!ret && thread->nearby)
		trial_note(trial, way, now_seconds() - begin, size);
	return ret;
}

/* The thread of a slot. */
static void *run_slot(void *argument)
{
	struct slot_thread *thread = argument;
	struct transfer *transfer = thread->transfer;

	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	while (ranges_take(&transfer->ranges, &thread->range) &&
	       !transfer->steps->process_range(thread)) {
		count_range(thread);
		ranges_finish(&transfer->ranges, &thread->range);
	}
	/* After an error, wake the threads that wait for a turn: the turn never comes. */
	(void)pthread_mutex_lock(&transfer->lock);
	for (unsigned int i = 0; i < transfer->slots.count; i++)
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
	int ret = ranges_init(&transfer->ranges, transfer->job, transfer->size, &transfer->slots,
			      transfer->plan->error);

	if (ret < 0)
		return ret;
	transfer->threads = calloc(transfer->slots.count, sizeof(*transfer->threads));
	if (!transfer->threads)
		return -ENOMEM;
	for (unsigned int i = 0; i < transfer->slots.count; i++) {
		struct slot_thread *thread = &transfer->threads[i];

		thread->transfer = transfer;
		thread->slot = i;
		(void)pthread_cond_init(&thread->turn, NULL);
		if (ranges_alloc_pieces(&thread->range, &transfer->slots) < 0)
			return -ENOMEM;
	}
	if (!wants_checksums(transfer))
		return 0;
	transfer->checksums = calloc(transfer->job->num_bos + 1, sizeof(*transfer->checksums));
	return transfer->checksums ? 0 : -ENOMEM;
}

static int begin_save(struct transfer *transfer)
{
	struct content_job *job = transfer->job;
	uint64_t length = htole64(transfer->size);
	int ret = image_io_begin_save(&transfer->io, job->image_fd, job->streamed,
				      transfer->plan->settings->skip_zeros,
				      IMAGE_HEADER_SIZE + transfer->size, transfer->plan->trial);

	job->has_checksums = false;
	memcpy(transfer->before, &length, IMAGE_HEADER_SIZE);
	return ret < 0 ? fail(transfer, ret, "reserve room for the image", 0) : 0;
}

static int end_save(struct transfer *transfer)
{
	struct content_job *job = transfer->job;
	int ret = image_io_end_save(&transfer->io);

	job->has_checksums = transfer->checksums;
	for (size_t i = 0; job->has_checksums && i < job->num_bos; i++)
		job->bos[i].checksum = transfer->checksums[i];
	return ret < 0 ? fail(transfer, ret, "write to the image", job->num_bos - 1) : 0;
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
			return fail(transfer, -ENOMEM, "allocate", 0);
	}
	return 0;
}

static int begin_load(struct transfer *transfer)
{
	int ret = image_io_begin_load(&transfer->io, transfer->job->image_fd,
				      transfer->job->streamed, IMAGE_HEADER_SIZE + transfer->size);

	return ret < 0 ? fail(transfer, ret, "read from the image", 0) : alloc_nearby(transfer);
}

static int end_load(struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	for (size_t i = 0; transfer->checksums && i < job->num_bos; i++) {
		if (transfer->checksums[i] != job->bos[i].checksum)
			return fail(transfer, -EBADMSG,
				    "checksum mismatch, its contents in the image differ from those"
				    " at the dump",
				    i);
	}
	return 0;
}

static const struct steps saving = { begin_save, save_range, end_save };
static const struct steps loading = { begin_load, load_range, end_load };

static int set_up(struct transfer *transfer)
{
	int ret = alloc(transfer);

	if (ret < 0)
		return fail(transfer, ret, "allocate", 0);
	ret = render_node_check_names();
	if (ret < 0)
		return fail(transfer, ret,
			    "libdrm's list amdgpu.ids must be a regular file of at most 1 MiB", 0);
	ret = sdma_open(transfer->job->render_minor, transfer->slots.count, transfer->slots.memory,
			&transfer->gpu);
	if (ret == -ENODATA)
		return fail(transfer, ret,
			    "open the copy engine without SDMA rings (set user_queue=1)", 0);
	if (ret < 0)
		return fail(transfer, ret, "open the copy engine", 0);
	ret = transfer->steps->begin(transfer);
	if (!ret)
		ranges_start(&transfer->ranges, transfer->gpu, contents_at(transfer));
	return ret;
}

/* After a failure the engine may hang with copies that no thread waits for, so sdma_stop() comes
 * first. */
static void tear_down(struct transfer *transfer)
{
	if (transfer->gpu)
		sdma_stop(transfer->gpu);
	ranges_done(&transfer->ranges);
	sdma_close(transfer->gpu);
	image_io_done(&transfer->io);
	free(transfer->checksums);
	for (unsigned int i = 0; transfer->threads && i < transfer->slots.count; i++) {
		(void)pthread_cond_destroy(&transfer->threads[i].turn);
		ranges_free_pieces(&transfer->threads[i].range);
		free(transfer->threads[i].nearby);
	}
	free(transfer->threads);
	transfer->threads = NULL;
}

/* A slot whose thread cannot be started stays unused. */
static void run_slots(struct transfer *transfer)
{
	unsigned int started = 1;

	while (started < transfer->slots.count &&
	       !thread_start(&transfer->threads[started].thread, run_slot,
			     &transfer->threads[started]))
		started++;
	(void)run_slot(&transfer->threads[0]);
	for (unsigned int i = 1; i < started; i++)
		(void)pthread_join(transfer->threads[i].thread, NULL);
}

static int check_faults(struct transfer *transfer)
{
	int ret = sdma_check_faults(transfer->gpu);

	return ret < 0 ? fail(transfer, ret, "a copy had a page fault", 0) : 0;
}

void transfer_init_load_trial(struct trial *trial, size_t num_transfers)
{
	trial_init(trial, uncached_copy_exists(), READS_IN_ONE_WAY * (unsigned int)num_transfers);
}

int transfer_new(const struct transfer_plan *plan, struct content_job *job, uint64_t size,
		 struct transfer **ret_transfer)
{
	struct transfer *transfer = calloc(1, sizeof(*transfer));

	if (!transfer)
		return -ENOMEM;
	transfer->plan = plan;
	transfer->job = job;
	transfer->steps = plan->save ? &saving : &loading;
	transfer->size = size;
	transfer->slots = slots_choose(plan->settings->staging_bytes, size, plan->num_transfers);
	(void)pthread_mutex_init(&transfer->lock, NULL);
	*ret_transfer = transfer;
	return 0;
}

void transfer_free(struct transfer *transfer)
{
	if (!transfer)
		return;
	(void)pthread_mutex_destroy(&transfer->lock);
	free(transfer);
}

void transfer_run(struct transfer *transfer)
{
	/* content_stop() may have come while this GPU waited for the limit. */
	if (has_stopped(transfer))
		return;
	if (set_up(transfer) == 0) {
		run_slots(transfer);
		if (!has_stopped(transfer) && !check_faults(transfer))
			(void)transfer->steps->end(transfer);
	}
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
