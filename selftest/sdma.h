/* SPDX-License-Identifier: GPL-2.0-only */
/* A user-mode SDMA queue and its packets (SDMA 4 and later: byte counts are encoded minus one, read
 * and write pointers are 64-bit byte positions that never wrap). One thread at a time per queue. */
#ifndef SELFTEST_SDMA_H
#define SELFTEST_SDMA_H

#include <stddef.h>
#include <stdint.h>

#include "gpus.h"
#include "memory.h"
#include "report.h"
#include "thunk.h"

/* Size of the packets, to work out how many fit into a ring. */
#define SDMA_COPY_BYTES   (7 * 4)
#define SDMA_FENCE_BYTES  (4 * 4)
#define SDMA_TRAP_BYTES   (2 * 4)
#define SDMA_ATOMIC_BYTES (8 * 4)
/* Most that is left unused at the end of a ring. */
#define SDMA_PAD_BYTES SDMA_ATOMIC_BYTES
/* Most that one copy packet moves. */
#define SDMA_COPY_MAX 0x400000u

struct sdma_queue {
	struct report *report;
	int gpu_index;
	struct thunk_queue at;
	struct memory ring;
	uint32_t *written; /* what the ring must have */
	/* One page that the engine writes: the word of sdma_mark(). */
	struct memory fence;
	uint64_t write_bytes;   /* made so far */
	uint64_t retired_bytes; /* known to be executed */
	uint32_t sequence;
};

struct sdma_mark {
	uint32_t sequence;
	uint64_t write_bytes;
};

/* @ring_bytes: a power of two, at least 4096. @kind: where the ring lives. */
int sdma_open(struct report *report, const struct gpu *gpu, enum memory_kind kind,
	      size_t ring_bytes, struct sdma_queue *queue);
void sdma_close(struct sdma_queue *queue);

size_t sdma_space(const struct sdma_queue *queue);

/* These put packets into the ring; the engine sees them at sdma_submit(). There must be space. */
void sdma_copy(struct sdma_queue *queue, const void *from, void *to, size_t bytes);
void sdma_fill(struct sdma_queue *queue, void *to, uint8_t byte, size_t bytes);
void sdma_atomic_add(struct sdma_queue *queue, void *to, uint64_t value);
/* Signals @event as ROCm does: its id into its slot, then an interrupt. */
void sdma_signal(struct sdma_queue *queue, const struct thunk_event *event);

/* Puts a fence with the next sequence number and rings the doorbell. */
struct sdma_mark sdma_submit(struct sdma_queue *queue);
/* Waits until the engine has got there, for 20 s of being awake (longer on an emulated machine);
 * -ETIME, reported, when it never does. */
int sdma_wait(struct sdma_queue *queue, const struct sdma_mark *mark);

/* The read pointer that the engine reports, when it is idle, must be all that was written. Ring and
 * fence must be as they were left. */
int sdma_check_idle(struct sdma_queue *queue);

/* One copy of any size, and the wait for it. */
int sdma_copy_now(struct sdma_queue *queue, const void *from, void *to, size_t bytes);

#endif
