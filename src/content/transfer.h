/* SPDX-License-Identifier: GPL-2.0-only */
/* The copy of one GPU's contents to or from an image: divides the contents into ranges, runs the
 * threads that take them, and has what a save and a load do with a range alike. save.c and load.c
 * have the ways, and content.c runs one transfer per GPU. */
#ifndef AMDGPU_PLUGIN_CONTENT_TRANSFER_H
#define AMDGPU_PLUGIN_CONTENT_TRANSFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"
#include "content/image_io.h"
#include "content/sdma.h"
#include "content/slots.h"
#include "image/image.h"

struct pool_gpu;
struct pool_part;

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
	struct content_settings settings;
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

/* A part of the contents that fits in a slot. */
struct range {
	/* Number of the range in the order of the contents, from 0. */
	uint64_t index;
	/* Bytes of the contents of all BOs before this range. */
	uint64_t offset;
	uint64_t size;
	struct sdma_piece *pieces;
	size_t num_pieces;
	/* When its copy was started. */
	double copy_begin;
};

/* A BO that the copy engine has imported. */
struct import;

struct ranges {
	/* One per BO. Only the thread that serves changes them. */
	struct import *imports;
	/* Guards the fields below. */
	pthread_mutex_t lock;
	/* A thread makes the ranges of all that wait for one, imports their BOs, and releases those
	 * of the ranges before. */
	bool has_server;
	/* The start of the next range, in all contents and in its BO. */
	uint64_t next_index;
	uint64_t next_offset;
	size_t bo;
	uint64_t bo_offset;
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

/* Borrows @plan and @job, whose BOs have @size bytes together. @transfer is all zero. Starts no
 * thread. */
void transfer_init(struct transfer *transfer, struct transfer_plan *plan, struct content_job *job,
		   uint64_t size);
void transfer_done(struct transfer *transfer);
/* After @transfer->io has begun: opens the GPU, and runs @process_ranges in this thread and in
 * threads that it starts and joins, one for each thread of @slots. That function takes ranges until
 * none is left or a thread has failed. Then the BOs are not needed any more. */
void transfer_run(struct transfer *transfer, struct slots slots, bool checksums,
		  void (*process_ranges)(struct slot_thread *thread));
/* Call this once after transfer_run(), or instead of it, when all is written. */
void transfer_end(struct transfer *transfer);
/* Another thread may call this between transfer_init() and transfer_done(). */
struct transfer_progress transfer_progress(struct transfer *transfer);

/* Stops all transfers of the run. Records the error if it is the first: of @job, or of no GPU if
 * that is NULL. Any thread may call this. */
void transfer_stop(struct transfer_plan *plan, const struct content_job *job, int ret,
		   const char *action, size_t bo);
/* Records the error of the transfer, and returns @ret. */
int transfer_fail(const struct transfer *transfer, int ret, const char *action, size_t bo);
/* The same for an error of @range: the message names its first BO. */
int transfer_fail_range(const struct transfer *transfer, const struct range *range, int ret,
			const char *action);
bool transfer_has_stopped(const struct transfer *transfer);

/* Sets the thread's range to the next part of the contents and imports its BOs. Releases the BOs of
 * its range before, which transfer_end_range() has ended, that no further range needs. False: no
 * range is left, or a thread has failed, maybe this one. Contents of no bytes have one range. */
bool transfer_take_range(struct slot_thread *thread);
/* Whether transfer_take_range() may still have a range. */
bool transfer_has_ranges(struct transfer *transfer);
/* The contents of the thread's range in its slot, and how far they are from the start of the slot.
 */
char *transfer_memory(const struct slot_thread *thread);
uint64_t transfer_contents_at(const struct transfer *transfer);
int transfer_start_copy(struct slot_thread *thread, enum sdma_direction direction);
/* 0 if the slot has no copy. */
int transfer_await_copy(struct slot_thread *thread);
/* Adds bytes [from, to) of the contents of @range, which are at @contents, to the checksums of
 * their BOs, if checksums are on. Several threads may add other parts at the same time. */
void transfer_add_checksums(const struct transfer *transfer, const struct range *range,
			    const char *contents, uint64_t from, uint64_t to);
/* Waits until the turns of all earlier ranges have ended. -ECANCELED: there was an error. */
int transfer_await_turn(struct slot_thread *thread);
void transfer_end_turn(struct slot_thread *thread);
/* Adds @done_bytes and the times of the thread to the progress. */
void transfer_end_range(struct slot_thread *thread, uint64_t done_bytes);

#endif
