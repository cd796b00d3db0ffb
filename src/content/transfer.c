// SPDX-License-Identifier: GPL-2.0-only
/* Copies the contents of one GPU's BOs to or from an image: divides the image into ranges, and the
 * thread of a slot processes the steps of a range. content_save() and content_load() handle all
 * GPUs and the log. */
#include "content/transfer.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/sdma.h"
#include "content/slots.h"
#include "image/image.h"
#include "kernel/render_node.h"
#include "storage/image_io.h"

_Static_assert(CONTENT_ALIGNMENT % IMAGE_IO_ALIGNMENT == 0, "ranges are whole blocks of the file");

/* A BO that the copy engine has imported. */
struct import {
	struct sdma_bo bo;
	/* Ranges that use the BO now. */
	unsigned int users;
};

/* A part of the contents, and the slot that holds it. */
struct range {
	struct transfer *transfer;
	unsigned int slot;
	pthread_t thread;
	/* Signals the range's turn, or the error of another thread. */
	pthread_cond_t turn;
	uint64_t index;
	/* In the contents of all BOs. */
	uint64_t offset;
	uint64_t size;
	struct sdma_piece *pieces;
	size_t num_pieces;
	double copy_s;
	double storage_s;
};

struct transfer {
	const struct transfer_plan *plan;
	struct content_job *job;
	const struct steps *steps;
	struct sdma *gpu;
	struct image_io io;
	struct checksums checksums;
	struct slots slots;
	struct range *ranges;
	/* The bytes of all BOs. */
	uint64_t size;
	/* Guards the fields below. */
	pthread_mutex_t lock;
	/* One per BO. */
	struct import *imports;
	/* The start of the next range, in all contents and in its BO. */
	uint64_t next_index;
	uint64_t next_offset;
	size_t bo;
	uint64_t bo_offset;
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
	int (*process_range)(struct range *range);
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

static size_t piece_bo_index(const struct transfer *transfer, const struct sdma_piece *piece)
{
	return (size_t)((const struct import *)piece->bo - transfer->imports);
}

/* The first BO of a range, for messages. */
static size_t first_bo(const struct range *range)
{
	return range->num_pieces ? piece_bo_index(range->transfer, &range->pieces[0]) : 0;
}

/* Where the contents start in a slot. */
static uint64_t contents_at(const struct transfer *transfer)
{
	return SLOT_MARGIN + image_io_shift(&transfer->io);
}

static char *range_memory(const struct range *range)
{
	const struct transfer *transfer = range->transfer;

	return (char *)sdma_slot_memory(transfer->gpu, range->slot) + contents_at(transfer);
}

static int import_current(struct transfer *transfer, struct import **ret_import)
{
	const struct content_bo *bo = &transfer->job->bos[transfer->bo];
	struct import *import = &transfer->imports[transfer->bo];

	if (!import->bo.bo) {
		int ret = sdma_bo_import(transfer->gpu, bo, &import->bo);

		if (ret < 0)
			return fail(transfer, ret,
				    ret == -ESTALE
					    ? "the kernel has given the dma-buf of another BO"
					    : "import the dma-buf",
				    transfer->bo);
	}
	*ret_import = import;
	return 0;
}

/* Adds the next BO, or as much of it as fits. */
static int add_piece(struct range *range)
{
	struct transfer *transfer = range->transfer;
	uint64_t left = transfer->job->bos[transfer->bo].size - transfer->bo_offset;
	uint64_t room = transfer->slots.size - range->size;
	uint64_t size = left < room ? left : room;
	struct import *import = NULL;
	int ret;

	ret = size ? import_current(transfer, &import) : 0;
	if (ret < 0)
		return ret;
	if (range->num_pieces == SDMA_SLOT_PIECES(transfer->slots.memory))
		return fail(transfer, -E2BIG, "divide its contents", transfer->bo);
	if (import) {
		import->users++;
		range->pieces[range->num_pieces++] = (struct sdma_piece){
			.bo = &import->bo,
			.offset = transfer->bo_offset,
			.slot_offset = contents_at(transfer) + range->size,
			.size = size,
		};
	}
	range->size += size;
	transfer->bo_offset += size;
	if (size == left) {
		transfer->bo++;
		transfer->bo_offset = 0;
	}
	return 0;
}

/* Sets @range to the next part of the contents. Each range fills its slot except the last. */
static int next_range(struct range *range)
{
	struct transfer *transfer = range->transfer;
	int ret = 0;

	range->index = transfer->next_index++;
	range->offset = transfer->next_offset;
	range->size = 0;
	range->num_pieces = 0;
	range->copy_s = range->storage_s = 0;
	while (!ret && transfer->bo < transfer->job->num_bos && range->size < transfer->slots.size)
		ret = add_piece(range);
	transfer->next_offset += range->size;
	return ret;
}

/* False: no range is left, or a thread has failed. Contents of no bytes have one range. */
static bool take_range(struct range *range)
{
	struct transfer *transfer = range->transfer;
	bool taken = false;

	(void)pthread_mutex_lock(&transfer->lock);
	if (!has_stopped(transfer) &&
	    (transfer->next_offset < transfer->size || !transfer->next_index))
		taken = next_range(range) == 0;
	(void)pthread_mutex_unlock(&transfer->lock);
	return taken;
}

/* Adds the range to the progress. Afterwards a piece has its BO only if no further range needs the
 * BO. Takes the lock once for all BOs, because other threads need it for their next range. */
static void count_range(struct range *range)
{
	struct transfer *transfer = range->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	for (size_t i = 0; i < range->num_pieces; i++) {
		size_t bo = piece_bo_index(transfer, &range->pieces[i]);

		if (--transfer->imports[bo].users || bo >= transfer->bo)
			range->pieces[i].bo = NULL;
	}
	transfer->done_bytes += range->size;
	transfer->copy_s += range->copy_s;
	transfer->storage_s += range->storage_s;
	(void)pthread_mutex_unlock(&transfer->lock);
}

/* Releases the BOs that no further range needs. */
static void finish_range(struct range *range)
{
	count_range(range);
	for (size_t i = 0; i < range->num_pieces; i++) {
		const struct sdma_piece *piece = &range->pieces[i];

		if (piece->bo)
			sdma_bo_release(
				&range->transfer->imports[piece_bo_index(range->transfer, piece)]
					 .bo);
	}
}

static int copy(struct range *range, enum sdma_direction direction)
{
	struct transfer *transfer = range->transfer;
	double begin = now_seconds();
	int ret;

	if (!range->num_pieces)
		return 0;
	ret = sdma_submit(transfer->gpu, range->slot, direction, range->pieces, range->num_pieces);
	if (ret < 0)
		return fail(transfer, ret, "start a copy", first_bo(range));
	ret = sdma_wait(transfer->gpu, range->slot, transfer->plan->settings->copy_timeout_s);
	range->copy_s += now_seconds() - begin;
	if (ret == -ETIME)
		return fail(transfer, ret, "a copy does not finish", first_bo(range));
	return ret < 0 ? fail(transfer, ret, "wait for a copy", first_bo(range)) : 0;
}

/* In the image, the contents of a range start IMAGE_HEADER_SIZE bytes after its offset. It writes
 * the bytes before them instead of its own last ones, which the next range writes. */
static int write_range(struct range *range)
{
	struct transfer *transfer = range->transfer;
	bool is_last = range->offset + range->size == transfer->size;
	double begin = now_seconds();
	int ret = image_io_write(&transfer->io, range_memory(range) - IMAGE_HEADER_SIZE,
				 range->offset, range->size + (is_last ? IMAGE_HEADER_SIZE : 0));

	range->storage_s += now_seconds() - begin;
	return ret < 0 ? fail(transfer, ret, "write to the image", first_bo(range)) : 0;
}

static int read_range(struct range *range)
{
	struct transfer *transfer = range->transfer;
	/* A file is read from a whole page on. A stream is already there. */
	uint64_t before = transfer->job->streamed ? 0 : IMAGE_HEADER_SIZE;
	double begin = now_seconds();
	int ret = image_io_read(&transfer->io, range_memory(range) - before, range->offset,
				before + range->size);

	range->storage_s += now_seconds() - begin;
	return ret < 0 ? fail(transfer, ret, "read from the image", first_bo(range)) : 0;
}

static void add_checksums(struct range *range)
{
	struct transfer *transfer = range->transfer;
	const char *memory = range_memory(range) - contents_at(transfer);

	for (size_t i = 0; i < range->num_pieces; i++) {
		const struct sdma_piece *piece = &range->pieces[i];
		size_t bo = piece_bo_index(transfer, piece);

		checksum_add(&transfer->checksums, &transfer->job->bos[bo], bo, piece->offset,
			     memory + piece->slot_offset, piece->size);
	}
}

/* Waits until the turns of all earlier ranges have ended. */
static int await_turn(struct range *range)
{
	struct transfer *transfer = range->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	while (transfer->turns != range->index && !has_stopped(transfer))
		(void)pthread_cond_wait(&range->turn, &transfer->lock);
	(void)pthread_mutex_unlock(&transfer->lock);
	return has_stopped(transfer) ? -ECANCELED : 0;
}

static void end_turn(struct range *range)
{
	struct transfer *transfer = range->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	transfer->turns++;
	for (unsigned int i = 0; i < transfer->slots.count; i++) {
		if (transfer->ranges[i].index == transfer->turns)
			(void)pthread_cond_signal(&transfer->ranges[i].turn);
	}
	(void)pthread_mutex_unlock(&transfer->lock);
}

/* Puts the bytes of the image that end the previous range before the contents. */
static void take_bytes_before(struct range *range)
{
	struct transfer *transfer = range->transfer;
	char *memory = range_memory(range);

	memcpy(memory - IMAGE_HEADER_SIZE, transfer->before, IMAGE_HEADER_SIZE);
	memcpy(transfer->before, memory + range->size - IMAGE_HEADER_SIZE, IMAGE_HEADER_SIZE);
}

static int write_in_turn(struct range *range)
{
	struct transfer *transfer = range->transfer;
	int ret = await_turn(range);

	if (ret < 0)
		return ret;
	if (checksum_needs_order(&transfer->checksums))
		add_checksums(range);
	take_bytes_before(range);
	if (transfer->job->streamed)
		ret = write_range(range);
	if (!ret)
		end_turn(range);
	return ret;
}

static int read_in_turn(struct range *range)
{
	struct transfer *transfer = range->transfer;
	int ret = await_turn(range);

	if (!ret && transfer->job->streamed)
		ret = read_range(range);
	if (!ret && checksum_needs_order(&transfer->checksums))
		add_checksums(range);
	if (!ret)
		end_turn(range);
	return ret;
}

static int save_range(struct range *range)
{
	struct transfer *transfer = range->transfer;
	int ret = copy(range, SDMA_BO_TO_SLOT);

	if (!ret && !checksum_needs_order(&transfer->checksums))
		add_checksums(range);
	if (!ret)
		ret = write_in_turn(range);
	if (!ret && !transfer->job->streamed)
		ret = write_range(range);
	return ret;
}

static int load_range(struct range *range)
{
	struct transfer *transfer = range->transfer;
	bool in_order = checksum_needs_order(&transfer->checksums);
	int ret = transfer->job->streamed ? 0 : read_range(range);

	if (!ret && (transfer->job->streamed || in_order))
		ret = read_in_turn(range);
	if (!ret && !in_order)
		add_checksums(range);
	return ret < 0 ? ret : copy(range, SDMA_SLOT_TO_BO);
}

/* The thread of a slot. */
static void *run_slot(void *argument)
{
	struct range *range = argument;
	struct transfer *transfer = range->transfer;

	while (take_range(range) && !transfer->steps->process_range(range))
		finish_range(range);
	/* After an error, wake the threads that wait for a turn: the turn never comes. */
	(void)pthread_mutex_lock(&transfer->lock);
	for (unsigned int i = 0; i < transfer->slots.count; i++)
		(void)pthread_cond_signal(&transfer->ranges[i].turn);
	(void)pthread_mutex_unlock(&transfer->lock);
	return NULL;
}

/* KFD's BOs are whole pages. Others have no checksums. */
static enum content_checksum choose_checksum(const struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	if (!transfer->plan->settings->checksum)
		return CONTENT_NO_CHECKSUM;
	if (!transfer->plan->save)
		return job->checksums;
	for (size_t i = 0; i < job->num_bos; i++) {
		if (job->bos[i].size % CONTENT_ALIGNMENT)
			return CONTENT_NO_CHECKSUM;
	}
	return CONTENT_XXH3_PAGES;
}

static int alloc_ranges(struct transfer *transfer)
{
	transfer->imports = calloc(transfer->job->num_bos, sizeof(*transfer->imports));
	transfer->ranges = calloc(transfer->slots.count, sizeof(*transfer->ranges));
	if (!transfer->imports || !transfer->ranges)
		return -ENOMEM;
	for (unsigned int i = 0; i < transfer->slots.count; i++) {
		struct range *range = &transfer->ranges[i];

		range->transfer = transfer;
		range->slot = i;
		(void)pthread_cond_init(&range->turn, NULL);
		range->pieces =
			calloc(SDMA_SLOT_PIECES(transfer->slots.memory), sizeof(*range->pieces));
		if (!range->pieces)
			return -ENOMEM;
	}
	return checksum_init(&transfer->checksums, choose_checksum(transfer),
			     transfer->job->num_bos);
}

static int begin_save(struct transfer *transfer)
{
	struct content_job *job = transfer->job;
	uint64_t length = htole64(transfer->size);
	int ret = image_io_begin_save(&transfer->io, job->image_fd, job->streamed,
				      transfer->plan->settings->skip_zeros,
				      IMAGE_HEADER_SIZE + transfer->size, transfer->plan->trial);

	job->checksums = CONTENT_NO_CHECKSUM;
	memcpy(transfer->before, &length, IMAGE_HEADER_SIZE);
	return ret < 0 ? fail(transfer, ret, "reserve room for the image", 0) : 0;
}

static int end_save(struct transfer *transfer)
{
	struct content_job *job = transfer->job;
	int ret = image_io_end_save(&transfer->io);

	job->checksums = transfer->checksums.kind;
	for (size_t i = 0; job->checksums && i < job->num_bos; i++)
		job->bos[i].checksum = checksum_get(&transfer->checksums, &job->bos[i], i);
	return ret < 0 ? fail(transfer, ret, "write to the image", job->num_bos - 1) : 0;
}

static int begin_load(struct transfer *transfer)
{
	int ret = image_io_begin_load(&transfer->io, transfer->job->image_fd,
				      transfer->job->streamed, IMAGE_HEADER_SIZE + transfer->size);

	return ret < 0 ? fail(transfer, ret, "read from the image", 0) : 0;
}

static int end_load(struct transfer *transfer)
{
	const struct content_job *job = transfer->job;

	for (size_t i = 0; transfer->checksums.kind && i < job->num_bos; i++) {
		if (checksum_get(&transfer->checksums, &job->bos[i], i) != job->bos[i].checksum)
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
	int ret = alloc_ranges(transfer);

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
	return transfer->steps->begin(transfer);
}

/* After a failure the engine may hang with copies that no thread waits for, so sdma_stop() comes
 * first. */
static void tear_down(struct transfer *transfer)
{
	if (transfer->gpu)
		sdma_stop(transfer->gpu);
	for (size_t i = 0; transfer->imports && i < transfer->job->num_bos; i++)
		sdma_bo_release(&transfer->imports[i].bo);
	sdma_close(transfer->gpu);
	image_io_done(&transfer->io);
	checksum_done(&transfer->checksums);
	for (unsigned int i = 0; transfer->ranges && i < transfer->slots.count; i++) {
		(void)pthread_cond_destroy(&transfer->ranges[i].turn);
		free(transfer->ranges[i].pieces);
	}
	free(transfer->ranges);
	free(transfer->imports);
	transfer->ranges = NULL;
	transfer->imports = NULL;
}

/* A slot whose thread cannot be started stays unused. */
static void run_slots(struct transfer *transfer)
{
	unsigned int started = 1;

	while (started < transfer->slots.count &&
	       !thread_start(&transfer->ranges[started].thread, run_slot,
			     &transfer->ranges[started]))
		started++;
	(void)run_slot(&transfer->ranges[0]);
	for (unsigned int i = 1; i < started; i++)
		(void)pthread_join(transfer->ranges[i].thread, NULL);
}

static int check_faults(struct transfer *transfer)
{
	int ret = sdma_check_faults(transfer->gpu);

	return ret < 0 ? fail(transfer, ret, "a copy had a page fault", 0) : 0;
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
	transfer->slots = slots_choose(plan->settings->staging_bytes, size);
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
