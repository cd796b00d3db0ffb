// SPDX-License-Identifier: GPL-2.0-only
/* The packet processor of AQL queues: checks packets, waits where they say so, and completes them.
 * Formats are those of the HSA specification and of hsa_ext_amd.h (vendor packets), signals those
 * of amd_hsa_signal.h. A packet begins when the one before is complete, so the barrier bit and the
 * fences have nothing to do. */
#include "aql.h"

#include <soc15d.h>

#include "cp.h"
#include "gpu.h"
#include "pm4.h"

static int refuse(struct gpu *gpu, const struct queue *queue, const char *fault)
{
	report_violation(&gpu->report, "AQL packet %llu of doorbell %#x has %s",
			 (unsigned long long)queue->rptr / AQL_PACKET_BYTES, queue->doorbell,
			 fault);
	return -EINVAL;
}

/* The queue whose packet reads a signal. */
struct reader {
	struct gpu *gpu;
	const struct queue *queue;
};

static int read_value(void *argument, u64 signal, s64 *ret_value)
{
	const struct reader *reader = argument;

	return memory_read(reader->gpu, &reader->queue->space,
			   signal + offsetof(struct aql_signal, value), ret_value,
			   sizeof(*ret_value));
}

/* The command processor leaves the ring for the commands; aql_step() comes back at their end. */
static int enter_buffer(struct queue *queue, const struct aql_pm4 *packet)
{
	uint64_t address = packet->jump[1] | (uint64_t)packet->jump[2] << 32;

	if (queue->aql->in_buffer)
		return 1;
	queue->aql->in_buffer = true;
	queue->ib.space = queue->space;
	queue->ib.address = address;
	queue->ib.end = address + 4ull * (AQL_PM4_DWORDS(packet));
	return 0;
}

/* Returns 1 if the packet is complete, 0 if it has come further, -EAGAIN if it waits. */
static int run_by_type(struct gpu *gpu, struct queue *queue, const union aql_packet *packet,
		       uint64_t at)
{
	struct reader reader = { gpu, queue };
	int ret;

	switch (aql_packet_type(packet)) {
	case AQL_DISPATCH:
		return aql_run_kernel(gpu, queue, &packet->dispatch, at);
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
		ret = aql_packet_look_at_barrier(packet, read_value, &reader);
		return ret ? ret : -EAGAIN;
	default:
		if (packet->pm4.format == AQL_VENDOR_PM4)
			return enter_buffer(queue, &packet->pm4);
		ret = aql_packet_look_at_value(&packet->value, read_value, &reader);
		return ret ? ret : -EAGAIN;
	}
}

/* A thread that waits for the signal relies on this order: times, the value, then its event. */
static int complete(struct gpu *gpu, struct queue *queue, uint64_t at)
{
	uint64_t times[2] = { queue->aql->began, gpu_clock() }, n = sizeof(int64_t);
	struct aql_signal signal;
	int64_t *value;
	int ret;

	if (!at)
		return 0;
	ret = memory_read(gpu, &queue->space, at, &signal, sizeof(signal));
	if (ret < 0)
		return ret;
	if (at % 64 || signal.kind != AQL_SIGNAL_USER)
		return refuse(gpu, queue, "a wrong completion signal");
	ret = memory_write(gpu, &queue->space, at + offsetof(struct aql_signal, start), times,
			   sizeof(times));
	if (ret < 0)
		return ret;
	value = memory_at(gpu, &queue->space, at + offsetof(struct aql_signal, value), ACCESS_WRITE,
			  &n);
	if (!value)
		return -EFAULT;
	(void)__atomic_sub_fetch(value, 1, __ATOMIC_SEQ_CST);
	if (!signal.mailbox)
		return 0;
	ret = memory_write64(gpu, &queue->space, signal.mailbox, signal.event_id);
	if (ret == 0)
		cp_interrupt(gpu, queue, signal.event_id);
	return ret;
}

bool aql_has_turn(const struct queue *queue)
{
	return queue->xccs < 2 ||
	       (queue->rptr / AQL_PACKET_BYTES + queue->xcc_turn) % queue->xccs == 0;
}

/* All XCCs of the queue go on behind the packet. */
static int advance(struct gpu *gpu, const struct queue *queue)
{
	uint64_t rptr = queue->rptr + AQL_PACKET_BYTES;
	int ret = 0;
	unsigned int i;

	for (i = 0; ret == 0 && i < QUEUE_MAX; i++) {
		struct queue *same = &gpu->queues[i];

		if (same != queue && (!same->active || !same->is_user || same->xccs < 2 ||
				      same->doorbell != queue->doorbell))
			continue;
		same->rptr = rptr;
		if (same->rptr_address)
			ret = memory_write64(gpu, &same->space, same->rptr_address,
					     rptr / AQL_PACKET_BYTES);
	}
	return ret;
}

/* The packet's place in the ring is free before its completion can be seen. */
static int retire(struct gpu *gpu, struct queue *queue, uint64_t at, uint64_t completion)
{
	uint16_t header = AQL_INVALID;
	int ret;

	ret = memory_write(gpu, &queue->space, at, &header, sizeof(header));
	if (ret < 0)
		return ret;
	gpu->counters.aql_packets++;
	ret = advance(gpu, queue);
	if (ret == 0)
		ret = complete(gpu, queue, completion);
	queue->aql->began = 0;
	queue->aql->in_buffer = false;
	return ret;
}

static int begin(struct gpu *gpu, struct queue *queue, const union aql_packet *packet)
{
	const char *fault;

	if (!queue->aql)
		queue->aql = calloc(1, sizeof(*queue->aql));
	if (!queue->aql)
		return -ENOMEM;
	if (queue->aql->began)
		return 0;
	fault = aql_packet_find_fault(packet);
	if (fault)
		return refuse(gpu, queue, fault);
	queue->aql->began = gpu_clock();
	report_log(&gpu->report, REPORT_PACKETS, "AQL packet %llu of doorbell %#x: type %u",
		   (unsigned long long)queue->rptr / AQL_PACKET_BYTES, queue->doorbell,
		   aql_packet_type(packet));
	return 0;
}

int aql_step(struct gpu *gpu, struct queue *queue)
{
	uint64_t at = queue->base + queue->rptr % queue->size_bytes;
	union aql_packet packet;
	int ret;

	if (queue_is_in_ib(queue))
		return pm4_step(gpu, queue);
	ret = memory_read(gpu, &queue->space, at, &packet, sizeof(packet));
	if (ret < 0)
		return ret;
	if (aql_packet_type(&packet) == AQL_INVALID)
		return -EAGAIN;
	ret = begin(gpu, queue, &packet);
	if (ret == 0)
		ret = run_by_type(gpu, queue, &packet, at);
	/* the last eight bytes of all types */
	return ret > 0 ? retire(gpu, queue, at, packet.dispatch.completion) : ret;
}
