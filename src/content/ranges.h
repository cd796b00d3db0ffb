/* SPDX-License-Identifier: GPL-2.0-only */
/* The ranges of a transfer: divides the contents of a GPU's BOs, and has what a save and a load do
 * with a range alike. */
#ifndef AMDGPU_PLUGIN_CONTENT_RANGES_H
#define AMDGPU_PLUGIN_CONTENT_RANGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/sdma.h"
#include "content/slots.h"

struct slot_thread;
struct transfer;

/* A part of the contents that fits in a slot. */
struct range {
	/* Number of the range in the order of the contents, from 0. */
	uint64_t index;
	/* Bytes of the contents of all BOs before this range. */
	uint64_t offset;
	uint64_t size;
	struct sdma_piece *pieces;
	size_t num_pieces;
	size_t max_pieces;
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

/* For so many BOs, or NULL. free() frees them. */
struct import *ranges_alloc_imports(size_t num_bos);
/* Releases all imports; no range can be taken any more. The ranges that were taken still have their
 * BOs' numbers. Accepts a transfer without imports. */
void ranges_release(struct transfer *transfer);

/* -ENOMEM. */
int ranges_alloc_pieces(struct range *range, const struct slots *slots);
void ranges_free_pieces(struct range *range);
/* Copies a range with the pieces that it has. -ENOMEM. */
int ranges_copy(const struct range *range, struct range *ret_copy);

/* Sets the thread's range to the next part of the contents and imports its BOs. Releases the BOs of
 * its range before, which ranges_finish() has ended, that no further range needs. False: no range
 * is left, or a thread has failed, maybe this one. Contents of no bytes have one range. */
bool ranges_take(struct slot_thread *thread);
/* Whether ranges_take() may still have a range. */
bool ranges_are_left(struct transfer *transfer);
/* The first BO of the range, for messages. */
size_t ranges_first_bo(const struct transfer *transfer, const struct range *range);

/* The contents of the thread's range in its slot, and how far they are from the start of the slot.
 */
char *ranges_memory(const struct slot_thread *thread);
uint64_t ranges_contents_at(const struct transfer *transfer);
int ranges_start_copy(struct slot_thread *thread, enum sdma_direction direction);
/* 0 if the slot has no copy. */
int ranges_await_copy(struct slot_thread *thread);
/* Adds bytes [from, to) of the contents of @range, which are at @contents, to the checksums of
 * their BOs, if checksums are on. Several threads may add other parts at the same time. */
void ranges_add_checksums(const struct transfer *transfer, const struct range *range,
			  const char *contents, uint64_t from, uint64_t to);
/* Waits until the turns of all earlier ranges have ended. -ECANCELED: there was an error. */
int ranges_await_turn(struct slot_thread *thread);
void ranges_end_turn(struct slot_thread *thread);
/* Adds @done_bytes and the times of the thread to the progress. */
void ranges_finish(struct slot_thread *thread, uint64_t done_bytes);

#endif
