// SPDX-License-Identifier: GPL-2.0-only
/* What threads do at a dump and at a restore alike. */
#include "content/steps.h"

#include <errno.h>

#include "amdgpu_plugin_util.h"

/* sdma_wait() sleeps longer if the copy has not ended. */
#define SHORT_WAIT_S 20e-6

int steps_fail(const struct transfer *transfer, int ret, const char *action, size_t bo)
{
	transfer_error_set(transfer->plan->error, transfer->job, ret, action, bo);
	return ret;
}

bool steps_has_stopped(const struct transfer *transfer)
{
	return transfer_error_is_set(transfer->plan->error);
}

size_t steps_first_bo(const struct slot_thread *thread)
{
	return ranges_first_bo(&thread->transfer->ranges, &thread->range);
}

uint64_t steps_contents_at(const struct transfer *transfer)
{
	return SLOT_MARGIN + image_io_shift(&transfer->io);
}

char *steps_memory(const struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;
	char *memory =
		thread->part ? thread->part->memory : sdma_slot_memory(transfer->gpu, thread->slot);

	return memory + steps_contents_at(transfer);
}

int steps_start_copy(struct slot_thread *thread, enum sdma_direction direction)
{
	struct transfer *transfer = thread->transfer;
	struct range *range = &thread->range;
	int ret;

	if (!range->num_pieces)
		return 0;
	range->copy_begin = now_seconds();
	ret = sdma_submit(transfer->gpu, thread->slot, direction, range->pieces, range->num_pieces);
	return ret < 0 ? steps_fail(transfer, ret, "start a copy", steps_first_bo(thread)) : 0;
}

int steps_await_copy(struct slot_thread *thread)
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
		keep_lose(transfer->keep, ret, action);
	return steps_fail(transfer, ret, action, steps_first_bo(thread));
}

void steps_change_slot(struct slot_thread *thread)
{
	struct range range = thread->range;

	thread->range = thread->other;
	thread->other = range;
	thread->slot ^= 1;
}

void steps_add_checksums(struct slot_thread *thread, uint64_t from, uint64_t to)
{
	const struct transfer *transfer = thread->transfer;

	if (transfer->checksums)
		ranges_add_checksums(&transfer->ranges, &thread->range, steps_memory(thread) + from,
				     from, to, transfer->checksums);
}

int steps_await_turn(struct slot_thread *thread)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	thread->awaited = thread->range.index;
	while (transfer->turns != thread->awaited && !steps_has_stopped(transfer))
		(void)pthread_cond_wait(&thread->turn, &transfer->lock);
	(void)pthread_mutex_unlock(&transfer->lock);
	return steps_has_stopped(transfer) ? -ECANCELED : 0;
}

void steps_end_turn(struct slot_thread *thread)
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

void steps_finish_range(struct slot_thread *thread, uint64_t done_bytes)
{
	struct transfer *transfer = thread->transfer;

	(void)pthread_mutex_lock(&transfer->lock);
	transfer->done_bytes += done_bytes;
	transfer->copy_s += thread->copy_s;
	transfer->storage_s += thread->storage_s;
	(void)pthread_mutex_unlock(&transfer->lock);
	thread->copy_s = thread->storage_s = 0;
	ranges_finish(&transfer->ranges, &thread->range);
}
