/* SPDX-License-Identifier: GPL-2.0-only */
/* Divides the contents of one GPU's BOs into ranges, and imports the BOs of each range for the copy
 * engine. save.c and load.c process the ranges. */
#ifndef AMDGPU_PLUGIN_CONTENT_RANGES_H
#define AMDGPU_PLUGIN_CONTENT_RANGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"
#include "content/sdma.h"
#include "content/slots.h"
#include "content/transfer_error.h"

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
	/* When its copy was started (steps.c). */
	double copy_begin;
};

/* A BO that the copy engine has imported. */
struct import;

struct ranges {
	/* Borrowed. */
	const struct content_job *job;
	struct transfer_error *error;
	struct sdma *gpu;
	/* The bytes of all BOs. */
	uint64_t size;
	/* The bytes of a range, if it is not the last. */
	uint64_t range_size;
	/* Where the contents start in a slot. */
	uint64_t contents_at;
	/* Guards the fields below. All BOs of a range are imported, or released, under it, too:
	 * libdrm has a lock that each of these calls takes, and threads that wait for each other at
	 * each BO would take 1.5 times as long. */
	pthread_mutex_t lock;
	/* One per BO. */
	struct import *imports;
	/* The start of the next range, in all contents and in its BO. */
	uint64_t next_index;
	uint64_t next_offset;
	size_t bo;
	uint64_t bo_offset;
};

/* For @job, whose BOs have @size bytes together. -ENOMEM; call ranges_done() even then. */
int ranges_init(struct ranges *ranges, const struct content_job *job, uint64_t size,
		const struct slots *slots, struct transfer_error *error);
/* Where the BOs are imported, and where the contents start in a slot. */
void ranges_start(struct ranges *ranges, struct sdma *gpu, uint64_t contents_at);
/* Releases all imports; no range can be taken any more. The ranges that were taken still have their
 * BOs' numbers. Accepts an empty object. */
void ranges_release(struct ranges *ranges);
/* The same, and frees the rest. */
void ranges_done(struct ranges *ranges);

/* -ENOMEM. */
int ranges_alloc_pieces(struct range *range, const struct slots *slots);
void ranges_free_pieces(struct range *range);
/* Copies a range with the pieces that it has. -ENOMEM. */
int ranges_copy(const struct range *range, struct range *ret_copy);

/* Sets @range to the next part of the contents and imports its BOs. Several threads may call this
 * at the same time. False: no range is left, or a thread has failed, maybe this one. Contents of no
 * bytes have one range. */
bool ranges_take(struct ranges *ranges, struct range *range);
/* Whether ranges_take() may still have a range. */
bool ranges_are_left(struct ranges *ranges);
/* Releases the BOs that no further range needs. */
void ranges_finish(struct ranges *ranges, const struct range *range);

/* Adds bytes [from, to) of the contents of @range, which are at @contents, to the checksums of
 * their BOs. Several threads may add other parts at the same time. */
void ranges_add_checksums(const struct ranges *ranges, const struct range *range,
			  const char *contents, uint64_t from, uint64_t to, uint64_t *checksums);

/* The number of the piece's BO in the job. */
size_t ranges_bo_of(const struct ranges *ranges, const struct sdma_piece *piece);
/* The first BO of a range, for messages. */
size_t ranges_first_bo(const struct ranges *ranges, const struct range *range);

#endif
