// SPDX-License-Identifier: GPL-2.0-only
#include "queue.h"

#include <errno.h>
#include <string.h>

#include "aql.h"
#include "gpu.h"
#include "ih.h"
#include "pm4.h"

#define TURN_NS 2000000ull /* before the driver's register accesses are answered again */
#define POLL_MS 1

struct queue *queue_new(struct gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++)
		if (!gpu->queues[i].active) {
			memset(&gpu->queues[i], 0, sizeof(gpu->queues[i]));
			return &gpu->queues[i];
		}
	report_violation(&gpu->report, "more than %u queues are mapped", QUEUE_MAX);
	return NULL;
}

void queue_remove(struct queue *queue)
{
	aql_drop(queue);
	queue->active = false;
}

void queues_forget(struct gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++)
		queue_remove(&gpu->queues[i]);
}

unsigned int queue_unit_bytes(const struct queue *queue)
{
	static const unsigned int units[] = {
		[QUEUE_SDMA] = 1, [QUEUE_PM4] = 4, [QUEUE_AQL] = AQL_PACKET_BYTES
	};

	return units[queue->kind];
}

/* Threads that share an AQL queue ring in any order, and the value is the last packet's index. */
static void ring_aql(struct gpu *gpu, struct queue *queue, uint64_t value)
{
	uint64_t wptr = (value + 1) * AQL_PACKET_BYTES;

	if (wptr <= queue->wptr)
		return;
	if (wptr - queue->rptr > queue->size_bytes)
		report_violation(&gpu->report,
				 "doorbell %#x: packet %#llx is more than a ring ahead of %#llx",
				 queue->doorbell, (unsigned long long)value,
				 (unsigned long long)queue->rptr / AQL_PACKET_BYTES);
	else
		queue->wptr = wptr;
}

static void ring_sdma(struct gpu *gpu, struct queue *queue, uint64_t value)
{
	if (value < queue->wptr || value - queue->rptr > queue->size_bytes || value % 4)
		report_violation(
			&gpu->report,
			"doorbell %#x: write pointer %#llx after %#llx, read pointer %#llx",
			queue->doorbell, (unsigned long long)value, (unsigned long long)queue->wptr,
			(unsigned long long)queue->rptr);
	else
		queue->wptr = value;
}

static void ring_one(struct gpu *gpu, struct queue *queue, uint64_t value)
{
	switch (queue->kind) {
	case QUEUE_SDMA:
		ring_sdma(gpu, queue, value);
		return;
	case QUEUE_PM4:
		queue->wptr = value * queue_unit_bytes(queue);
		return;
	case QUEUE_AQL:
		ring_aql(gpu, queue, value);
		return;
	}
}

/* A process may ring a queue that is not mapped: when the scheduler maps it, it reads the write
 * pointer from memory. */
void queues_ring(struct gpu *gpu, uint32_t doorbell, uint64_t value)
{
	bool found = ih_take_doorbell(gpu, doorbell, value);
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++) {
		struct queue *queue = &gpu->queues[i];

		if (!queue->active || !queue->has_doorbell || queue->doorbell != doorbell)
			continue;
		found = true;
		ring_one(gpu, queue, value);
	}
	report_log(&gpu->report, REPORT_PACKETS, "doorbell %#x = %#llx%s", doorbell,
		   (unsigned long long)value, found ? "" : ", of no mapped queue");
}

bool queue_is_in_ib(const struct queue *queue)
{
	return queue->ib.address < queue->ib.end;
}

const struct space *queue_space(const struct queue *queue)
{
	return queue_is_in_ib(queue) ? &queue->ib.space : &queue->space;
}

static int fetch_ring(struct gpu *gpu, const struct queue *queue, uint64_t at, uint32_t count,
		      uint32_t *dwords)
{
	uint64_t offset = at % queue->size_bytes;
	uint64_t until_end = queue->size_bytes - offset, size_bytes = 4ull * count;
	uint64_t first = size_bytes < until_end ? size_bytes : until_end;
	int ret = memory_read(gpu, &queue->space, queue->base + offset, dwords, first);

	if (ret < 0 || first == size_bytes)
		return ret;
	return memory_read(gpu, &queue->space, queue->base, dwords + first / 4, size_bytes - first);
}

int queue_fetch(struct gpu *gpu, const struct queue *queue, uint32_t first, uint32_t count,
		uint32_t *dwords)
{
	if (!queue_is_in_ib(queue))
		return fetch_ring(gpu, queue, queue->rptr + 4ull * first, count, dwords);
	return memory_read(gpu, &queue->ib.space, queue->ib.address + 4ull * first, dwords,
			   4ull * count);
}

/* AQL queues are no rings of dwords: aql.c moves their pointers, and only their command buffers
 * come here. */
static int advance_ring(struct gpu *gpu, struct queue *queue)
{
	if (queue->kind == QUEUE_AQL)
		return 0;
	queue->rptr += 4ull * queue->packet_dwords;
	if (queue->kind == QUEUE_SDMA)
		return sdma_report(gpu, queue);
	if (!queue->rptr_address)
		return 0;
	return memory_write32(gpu, &queue->space, queue->rptr_address,
			      (uint32_t)(queue->rptr / queue_unit_bytes(queue)));
}

int queue_advance(struct gpu *gpu, struct queue *queue)
{
	int ret = 0;

	if (queue_is_in_ib(queue))
		queue->ib.address += 4ull * queue->packet_dwords;
	else
		ret = advance_ring(gpu, queue);
	queue->packet_dwords = 0;
	if (queue->next_ib.end) {
		queue->ib = queue->next_ib;
		memset(&queue->next_ib, 0, sizeof(queue->next_ib));
	}
	return ret;
}

bool queue_compare(uint32_t function, uint32_t value, uint32_t reference)
{
	switch (function) {
	case 1:
		return value < reference;
	case 2:
		return value <= reference;
	case 3:
		return value == reference;
	case 4:
		return value != reference;
	case 5:
		return value >= reference;
	case 6:
		return value > reference;
	default:
		return true;
	}
}

static bool has_work(const struct queue *queue)
{
	if (!queue->active || queue->is_faulted || !queue->size_bytes)
		return false;
	if (queue_is_in_ib(queue))
		return true;
	/* PM4 writers may count modulo the ring. */
	if (queue->kind == QUEUE_PM4)
		return queue->rptr % queue->size_bytes != queue->wptr % queue->size_bytes;
	return queue->rptr != queue->wptr && (queue->kind != QUEUE_AQL || aql_has_turn(queue));
}

static int step(struct gpu *gpu, struct queue *queue)
{
	switch (queue->kind) {
	case QUEUE_SDMA:
		return sdma_step(gpu, queue);
	case QUEUE_PM4:
		return pm4_step(gpu, queue);
	case QUEUE_AQL:
		return aql_step(gpu, queue);
	}
	return -EINVAL;
}

/* A packet of the driver's own queue has faulted, or one of a command buffer that it runs for a
 * process. Hardware reads zeros and goes on. */
static void skip(struct gpu *gpu, struct queue *queue)
{
	memset(&queue->next_ib, 0, sizeof(queue->next_ib));
	if (queue->packet_dwords)
		(void)queue_advance(gpu, queue);
	else if (queue_is_in_ib(queue))
		queue->ib.address = queue->ib.end;
	else
		queue->is_faulted = true;
	memset(&gpu->fault, 0, sizeof(gpu->fault));
}

/* The queue of a process stops in front of the packet until the scheduler maps it anew. */
static void fail(struct gpu *gpu, struct queue *queue, int error)
{
	bool is_fault = gpu->fault.pending;

	gpu->counters.faults++;
	if (is_fault)
		memory_report_fault(gpu);
	if (is_fault && !queue->is_user) {
		skip(gpu, queue);
		return;
	}
	queue->is_faulted = true;
	report_log(&gpu->report, REPORT_ALWAYS, "the queue with doorbell %#x stops: %s",
		   queue->doorbell, strerror(-error));
}

/* Milliseconds until the queue can go on, or 0 now, or -1 not by itself. */
static int run_one(struct gpu *gpu, struct queue *queue)
{
	int wait_ms, ret;

	if (!has_work(queue))
		return -1;
	wait_ms = queue->kind == QUEUE_SDMA ? sdma_wait_ms(gpu, queue) : pm4_wait_ms(gpu, queue);
	if (wait_ms)
		return wait_ms;
	memset(&gpu->fault, 0, sizeof(gpu->fault));
	ret = step(gpu, queue);
	if (ret == -EAGAIN)
		return POLL_MS;
	if (ret < 0)
		fail(gpu, queue, ret);
	return 0;
}

int queue_shorter(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

int queues_run(struct gpu *gpu)
{
	uint64_t end = gpu_now_ns() + TURN_NS;
	unsigned int i;
	int wait_ms;

	do {
		wait_ms = hws_run(gpu);
		for (i = 0; i < QUEUE_MAX; i++)
			wait_ms = queue_shorter(wait_ms, run_one(gpu, &gpu->queues[i]));
	} while (wait_ms == 0 && gpu_now_ns() < end);
	return wait_ms;
}
