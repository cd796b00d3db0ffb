/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes SDMA packets into the ring of a user-mode queue and waits for fences. The callers choose
 * the packets. */
#include "sdma.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OP_NOP        0u
#define OP_COPY       1u
#define OP_FENCE      5u
#define OP_TRAP       6u
#define OP_ATOMIC     10u
#define OP_CONST_FILL (11u | 2u << 30) /* in units of 4 bytes */
#define ATOMIC_ADD64  (0x2fu << 25)
/* In the second word of the page of fences: the engine writes the first one again and again. */
#define FENCE_MARK 0x66656e63u

/* Sleeps of the waits: counted, not timed, as the clock goes on while the process is frozen. */
#define WAIT_STEP_US 500
#define WAIT_STEPS   (20 * (1000000 / WAIT_STEP_US))

int sdma_open(struct report *report, const struct gpu *gpu, enum memory_kind kind,
	      size_t ring_bytes, struct sdma_queue *queue)
{
	struct gpus only = memory_only(gpu);
	int ret;

	memset(queue, 0, sizeof(*queue));
	queue->report = report;
	queue->gpu_index = gpu->index;
	ret = memory_alloc(report, kind, ring_bytes, gpu, &only, &queue->ring);
	if (ret < 0)
		return ret;
	memset(queue->ring.address, 0, ring_bytes);
	queue->written = calloc(1, ring_bytes);
	if (!queue->written)
		return report_fail(report, -ENOMEM, "no memory for the packets of a queue");
	ret = memory_alloc(report, MEMORY_GTT, 4096, gpu, &only, &queue->fence);
	if (ret < 0)
		return ret;
	memset(queue->fence.address, 0, 4096);
	((uint32_t *)queue->fence.address)[1] = FENCE_MARK;

	ret = thunk_queue_new(gpu, THUNK_SDMA, &queue->ring, NULL, &queue->at);
	if (ret < 0)
		return report_fail(report, ret, "GPU %d: cannot create an SDMA queue: %s",
				   gpu->index, strerror(-ret));
	return 0;
}

void sdma_close(struct sdma_queue *queue)
{
	int ret = thunk_queue_free(&queue->at);

	if (ret < 0)
		report_fail(queue->report, ret, "GPU %d: cannot destroy a queue: %s",
			    queue->gpu_index, strerror(-ret));
	memory_free(queue->report, &queue->fence);
	memory_free(queue->report, &queue->ring);
	free(queue->written);
	queue->written = NULL;
}

size_t sdma_space(const struct sdma_queue *queue)
{
	return queue->ring.size_bytes - (size_t)(queue->write_bytes - queue->retired_bytes);
}

static void sdma_put_word(struct sdma_queue *queue, uint32_t word)
{
	volatile uint32_t *ring = queue->ring.address;
	size_t at = queue->write_bytes / 4 % (queue->ring.size_bytes / 4);

	ring[at] = queue->written[at] = word;
	queue->write_bytes += 4;
}

/* A packet must not wrap around the end of the ring: NOPs, which are zeroes, fill what is left. */
static void sdma_pad(struct sdma_queue *queue, size_t count)
{
	size_t words = queue->ring.size_bytes / 4;
	size_t at = queue->write_bytes / 4 % words;

	if (at + count <= words)
		return;
	for (; at < words; at++)
		sdma_put_word(queue, OP_NOP);
}

static void sdma_put(struct sdma_queue *queue, const uint32_t *packet, size_t count)
{
	/* Writing over packets that were not executed yet would spoil the test, not the device. */
	if (sdma_space(queue) < count * 4 + SDMA_PAD_BYTES)
		abort();
	sdma_pad(queue, count);
	for (size_t i = 0; i < count; i++)
		sdma_put_word(queue, packet[i]);
}

static uint32_t low(const void *address)
{
	return (uint32_t)(uintptr_t)address;
}

static uint32_t high(const void *address)
{
	return (uint32_t)((uintptr_t)address >> 32);
}

void sdma_copy(struct sdma_queue *queue, const void *from, void *to, size_t bytes)
{
	const uint32_t packet[] = { OP_COPY, (uint32_t)bytes - 1, 0, low(from), high(from), low(to),
				    high(to) };

	sdma_put(queue, packet, sizeof(packet) / 4);
}

void sdma_fill(struct sdma_queue *queue, void *to, uint8_t byte, size_t bytes)
{
	const uint32_t packet[] = { OP_CONST_FILL, low(to), high(to), byte * 0x01010101u,
				    (uint32_t)bytes - 1 };

	sdma_put(queue, packet, sizeof(packet) / 4);
}

static void sdma_fence(struct sdma_queue *queue, void *to, uint32_t value)
{
	const uint32_t packet[] = { OP_FENCE, low(to), high(to), value };

	sdma_put(queue, packet, sizeof(packet) / 4);
}

void sdma_atomic_add(struct sdma_queue *queue, void *to, uint64_t value)
{
	const uint32_t packet[] = { OP_ATOMIC | ATOMIC_ADD64, low(to), high(to), (uint32_t)value,
				    (uint32_t)(value >> 32),  0,       0,        0 };

	sdma_put(queue, packet, sizeof(packet) / 4);
}

void sdma_signal(struct sdma_queue *queue, const struct thunk_event *event)
{
	const uint32_t packet[] = { OP_TRAP, event->id };

	sdma_fence(queue, event->slot, event->id);
	sdma_put(queue, packet, sizeof(packet) / 4);
}

struct sdma_mark sdma_submit(struct sdma_queue *queue)
{
	struct sdma_mark mark = { .sequence = ++queue->sequence };

	sdma_fence(queue, queue->fence.address, mark.sequence);
	mark.write_bytes = queue->write_bytes;
	/* Packets before the pointer, the pointer before the doorbell (GCC's thread sanitizer knows
	 * no fence). */
	__atomic_store_n(queue->at.write, queue->write_bytes, __ATOMIC_SEQ_CST);
	__atomic_store_n(queue->at.doorbell, queue->write_bytes, __ATOMIC_RELEASE);
	return mark;
}

static bool sdma_reached(const struct sdma_queue *queue, const struct sdma_mark *mark)
{
	const uint32_t *fence = queue->fence.address;
	uint32_t now = __atomic_load_n(fence, __ATOMIC_ACQUIRE);

	return (int32_t)(now - mark->sequence) >= 0;
}

int sdma_wait(struct sdma_queue *queue, const struct sdma_mark *mark)
{
	for (long i = 0; !sdma_reached(queue, mark); i++) {
		if (i == WAIT_STEPS)
			return report_fail(queue->report, -ETIME,
					   "GPU %d: queue %" PRIu64 " hangs: fence %u, waiting for "
					   "%u; read pointer %" PRIu64 ", write pointer %" PRIu64,
					   queue->gpu_index, queue->at.id,
					   *(volatile uint32_t *)queue->fence.address,
					   mark->sequence, *queue->at.read, queue->write_bytes);
		(void)usleep(WAIT_STEP_US);
	}
	queue->retired_bytes = mark->write_bytes;
	return 0;
}

/* The engine reads neither again, so a wrong word shows here only. */
static int sdma_check_memory(const struct sdma_queue *queue)
{
	const uint32_t *ring = queue->ring.address, *fence = queue->fence.address;
	size_t at = 0;

	if (fence[0] != queue->sequence || fence[1] != FENCE_MARK)
		return report_fail(queue->report, -EILSEQ,
				   "GPU %d: fence of queue %" PRIu64
				   ": expected %u %#x, got %u %#x",
				   queue->gpu_index, queue->at.id, queue->sequence, FENCE_MARK,
				   fence[0], fence[1]);
	if (memcmp(ring, queue->written, queue->ring.size_bytes) == 0)
		return 0;
	while (ring[at] == queue->written[at])
		at++;
	return report_fail(queue->report, -EILSEQ,
			   "GPU %d: word %zu in the ring of queue %" PRIu64
			   ": expected %#x, got %#x",
			   queue->gpu_index, at, queue->at.id, queue->written[at], ring[at]);
}

int sdma_check_idle(struct sdma_queue *queue)
{
	uint64_t read_bytes = 0;

	/* The fence packet is seen before the pointer that comes after it. */
	for (long i = 0; i < WAIT_STEPS / 8; i++) {
		read_bytes = __atomic_load_n(queue->at.read, __ATOMIC_ACQUIRE);
		if (read_bytes == queue->write_bytes)
			return sdma_check_memory(queue);
		(void)usleep(WAIT_STEP_US);
	}
	return report_fail(queue->report, -EILSEQ,
			   "GPU %d: read pointer of queue %" PRIu64 ": expected %" PRIu64
			   ", got %" PRIu64,
			   queue->gpu_index, queue->at.id, queue->write_bytes, read_bytes);
}

int sdma_copy_now(struct sdma_queue *queue, const void *from, void *to, size_t bytes)
{
	struct sdma_mark mark;
	const char *source = from;
	char *target = to;

	while (bytes > 0) {
		size_t n = bytes < SDMA_COPY_MAX ? bytes : SDMA_COPY_MAX;
		int ret;

		sdma_copy(queue, source, target, n);
		mark = sdma_submit(queue);
		ret = sdma_wait(queue, &mark);
		if (ret < 0)
			return ret;
		source += n;
		target += n;
		bytes -= n;
	}
	return 0;
}
