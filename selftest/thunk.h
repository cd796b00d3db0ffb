/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues and events of this process. Two programs implement them, and gpus.h and memory.h: the job
 * of the selftest by plain ioctls, in this folder, and the client of the tests by libhsakmt, in
 * test/vm/client. Functions return 0 or -errno and report nothing. */
#ifndef SELFTEST_THUNK_H
#define SELFTEST_THUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "gpus.h"
#include "memory.h"

enum thunk_queue_type {
	THUNK_SDMA,
	THUNK_AQL,
};

struct thunk_queue {
	uint64_t id;
	/* Positions in the ring: bytes for SDMA, packets for AQL. */
	volatile uint64_t *read, *write;
	volatile uint64_t *doorbell; /* NULL: there is no queue */
	void *more;                  /* what the implementation has to free */
};

/* Makes a queue on a ring that the GPU maps. @pointers: for AQL, a page of memory that begins with
 * the read pointer and the write pointer; for SDMA NULL. */
int thunk_queue_new(const struct gpu *gpu, enum thunk_queue_type type, const struct memory *ring,
		    uint64_t *pointers, struct thunk_queue *ret_queue);
/* Accepts a queue that is all zero. */
int thunk_queue_free(struct thunk_queue *queue);

enum thunk_event_type {
	THUNK_SIGNAL,
	THUNK_HW_EXCEPTION,
	THUNK_MEMORY,
};

struct thunk_event {
	uint32_t id;
	/* The engine writes the id here before its interrupt. */
	uint64_t *slot;
	void *more;
};

/* @manual: it stays set until it is reset. @gpu: for other types than THUNK_SIGNAL. */
int thunk_event_new(enum thunk_event_type type, const struct gpu *gpu, bool manual,
		    struct thunk_event **ret_event);
int thunk_event_free(struct thunk_event *event);
int thunk_event_set(struct thunk_event *event, bool state);
/* Waits for the event. With @now it only looks: -ETIME, it is not set. */
int thunk_event_wait(struct thunk_event *event, bool now);

#endif
