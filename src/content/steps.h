/* SPDX-License-Identifier: GPL-2.0-only */
/* A transfer and its threads, for the files that have steps of them: save.c those of a dump, load.c
 * those of a restore, steps.c those of both. transfer.c runs them. */
#ifndef AMDGPU_PLUGIN_CONTENT_STEPS_H
#define AMDGPU_PLUGIN_CONTENT_STEPS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/image_io.h"
#include "content/keep_part.h"
#include "content/ranges.h"
#include "content/sdma.h"
#include "content/slots.h"
#include "content/transfer.h"
#include "image/image.h"

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
	struct range range;
	/* The range in the other slot of a pair, which the engine may still copy. */
	struct range other;
	/* The memory of the slot if contents are kept, or NULL. */
	struct keep_part *part;
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
	/* job->keep, or NULL if it has no memory for this GPU. Then a range is copied to a part of
	 * it, and the threads of the keep write the range. */
	struct keep *keep;
	struct keep_gpu *kept_gpu;
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
	/* Ranges that are copied and not written. */
	uint64_t unwritten;
	pthread_cond_t written;
};

/* The steps that differ between the two directions. */
struct steps {
	int (*begin)(struct transfer *transfer);
	/* Takes ranges until none is left or a thread has failed. */
	void (*process_ranges)(struct slot_thread *thread);
	/* Is called after an error, too. */
	void (*end)(struct transfer *transfer);
};

/* Notes the error of the transfer, and returns @ret. */
int steps_fail(const struct transfer *transfer, int ret, const char *action, size_t bo);
bool steps_has_stopped(const struct transfer *transfer);
/* The first BO of the range, for messages. */
size_t steps_first_bo(const struct slot_thread *thread);
/* Where the contents start in the memory of a slot. */
uint64_t steps_contents_at(const struct transfer *transfer);
/* The contents of the range. */
char *steps_memory(const struct slot_thread *thread);
int steps_start_copy(struct slot_thread *thread, enum sdma_direction direction);
/* 0 if the slot has no copy. */
int steps_await_copy(struct slot_thread *thread);
/* Goes on in the other slot of a pair. */
void steps_change_slot(struct slot_thread *thread);
/* Adds the bytes [from, to) of the range to the checksums, if they are on. */
void steps_add_checksums(struct slot_thread *thread, uint64_t from, uint64_t to);
/* Waits until the turns of all earlier ranges have ended. -ECANCELED: there was an error. */
int steps_await_turn(struct slot_thread *thread);
void steps_end_turn(struct slot_thread *thread);
/* Adds @done_bytes and the times of the thread to the progress, and releases the range's BOs. */
void steps_finish_range(struct slot_thread *thread, uint64_t done_bytes);

#endif
