/* SPDX-License-Identifier: GPL-2.0-only */
/* The copy of one GPU's contents to or from an image: its state, and what a save and a load have in
 * common. save.c and load.c have the ways, and content.c runs one transfer per GPU. */
#ifndef AMDGPU_PLUGIN_CONTENT_TRANSFER_H
#define AMDGPU_PLUGIN_CONTENT_TRANSFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"
#include "content/image_io.h"
#include "content/ranges.h"
#include "content/slots.h"
#include "image/image.h"

struct pool_gpu;
struct pool_part;
struct sdma;

/* The first error of all transfers of a run. It ends them all. */
struct transfer_error {
	pthread_mutex_t lock;
	int ret;
	/* The GPU of the error, or NULL if it concerns none. */
	const struct content_job *job;
	const char *action;
	size_t bo;
	/* Read without the lock. */
	bool stop;
};

/* What the transfers of a run share. */
struct transfer_plan {
	const struct content_settings *settings;
	struct transfer_error error;
	/* The transfers that share the processors. */
	size_t num_transfers;
};

struct transfer_progress {
	/* Bytes of contents. */
	uint64_t done_bytes;
	/* Seconds that all threads together spent on copies, and on storage. */
	double copy_s;
	double storage_s;
};

/* A thread that processes ranges, in one slot or in two by turns. */
struct slot_thread {
	struct transfer *transfer;
	unsigned int slot;
	bool is_paired;
	pthread_t thread;
	/* Signals the turn of the range, or the error of another thread. */
	pthread_cond_t turn;
	/* Under the transfer's lock: the range whose turn the thread awaits, or awaited last. */
	uint64_t awaited;
	/* Under the lock of the ranges: the thread waits for its next range, which @served signals,
	 * and whether it has got one. */
	bool wants_range, has_range;
	pthread_cond_t served;
	struct range range;
	/* Load: the range in the other slot of a pair, which the engine may still copy. */
	struct range other;
	/* Save: the memory of the slot if contents are kept, or NULL. */
	struct pool_part *part;
	double copy_s;
	double storage_s;
};

struct transfer {
	struct transfer_plan *plan;
	struct content_job *job;
	/* The bytes of all BOs. */
	uint64_t size;
	struct image_io io;
	/* For each BO the sum of the parts so far, or NULL if checksums are off. */
	uint64_t *checksums;
	struct sdma *gpu;
	struct ranges ranges;
	struct slots slots;
	struct slot_thread *threads;
	/* Of save.c or load.c. */
	void (*process_ranges)(struct slot_thread *thread);
	/* Save: job->pool, or NULL if it has no memory for this GPU. Then a range is copied to a
	 * part of it, and the threads of the pool write the range. */
	struct pool *pool;
	struct pool_gpu *pool_gpu;
	/* Guards the fields below. */
	pthread_mutex_t lock;
	/* The number of ranges whose turn has ended. */
	uint64_t turns;
	/* Save: the bytes of the image before the next range that has a turn. */
	char before[IMAGE_HEADER_SIZE];
	struct transfer_progress progress;
	/* Save: ranges that are copied and not written. */
	uint64_t unwritten;
	pthread_cond_t written;
};

/* Borrows @plan and @job, whose BOs have @size bytes together. Starts no thread. -ENOMEM. */
int transfer_new(struct transfer_plan *plan, struct content_job *job, uint64_t size,
		 struct transfer **ret_transfer);
/* Accepts NULL. */
void transfer_free(struct transfer *transfer);
/* After @transfer->io has begun: opens the GPU, and runs @process_ranges in this thread and in
 * threads that it starts and joins, one for each thread of @slots. That function takes ranges until
 * none is left or a thread has failed. Then the BOs are not needed any more. */
void transfer_run(struct transfer *transfer, struct slots slots, bool checksums,
		  void (*process_ranges)(struct slot_thread *thread));
/* Call this once after transfer_run(), or instead of it, when all is written. */
void transfer_end(struct transfer *transfer);
/* Another thread may call this between transfer_new() and transfer_free(). */
struct transfer_progress transfer_progress(struct transfer *transfer);

/* Stops all transfers of the run. Records the error if it is the first: of @job, or of no GPU if
 * that is NULL. Any thread may call this. */
static inline void transfer_stop(struct transfer_plan *plan, const struct content_job *job, int ret,
				 const char *action, size_t bo)
{
	struct transfer_error *error = &plan->error;

	(void)pthread_mutex_lock(&error->lock);
	if (!error->ret) {
		error->ret = ret;
		error->job = job;
		error->action = action;
		error->bo = bo;
	}
	__atomic_store_n(&error->stop, true, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&error->lock);
}

/* Records the error of the transfer, and returns @ret. */
static inline int transfer_fail(const struct transfer *transfer, int ret, const char *action,
				size_t bo)
{
	transfer_stop(transfer->plan, transfer->job, ret, action, bo);
	return ret;
}

static inline bool transfer_has_stopped(const struct transfer *transfer)
{
	return __atomic_load_n(&transfer->plan->error.stop, __ATOMIC_RELAXED);
}

#endif
