// SPDX-License-Identifier: GPL-2.0-only
/*
 * The packet processor of AQL queues: checks packets, waits where they say so, and completes them.
 * Formats are those of the HSA specification and of hsa_ext_amd.h (vendor packets), signals those
 * of amd_hsa_signal.h. A packet begins when the one before is complete, so the barrier bit and the
 * fences have nothing to do. */
#include "aql.h"

/* PM4 (soc15d.h, Linux 6.12): packets of type 3, whose header counts the dwords behind it less 1.
 */
#define PM4_NOP            0x10u
#define PM4_ACQUIRE_MEM    0x58u
#define PM4_ACQUIRE_DWORDS 7u
#define PM4_MAX_DWORDS     1024u

static int refuse(const struct sim_queue *queue, const struct sim_client *client, const char *fault)
{
	sim_violation(client->sim, "%s: AQL packet %" SIM_PRIu64 " has %s", client->who,
		      queue->rptr, fault);
	return -EINVAL;
}

static int read_value(void *client, u64 signal, s64 *ret_value)
{
	return sim_client_read(client, signal + offsetof(struct aql_signal, value), ret_value,
			       sizeof(*ret_value));
}

/* The dwords of the PM4 packet at @at of @count; 0: the packet is not known. Only caches are
 * maintained in this way, and the model has no caches. */
static u32 pm4_length(const u32 *dwords, u32 at, u32 count)
{
	u32 header = dwords[at], op = header >> 8 & 0xff, length = (header >> 16 & 0x3fff) + 2;

	if (header >> 30 != 3 || header & 0xff || length > count - at)
		return 0;
	if (op == PM4_ACQUIRE_MEM)
		return length == PM4_ACQUIRE_DWORDS ? length : 0;
	return op == PM4_NOP ? length : 0;
}

static int run_pm4(const struct sim_queue *queue, const struct sim_client *client,
		   const struct aql_pm4 *packet)
{
	u32 count = AQL_PM4_DWORDS(packet), at = 0, length = 1;
	u64 addr = packet->jump[1] | (u64)packet->jump[2] << 32;
	u32 *dwords;
	int ret;

	if (count > PM4_MAX_DWORDS)
		return refuse(queue, client, "a long command buffer");
	dwords = sim_os_alloc(count ? 4ull * count : 4);
	ret = dwords ? sim_client_read(client, addr, dwords, 4ull * count) : -ENOMEM;
	for (; ret == 0 && length && at < count; at += length)
		length = pm4_length(dwords, at, count);
	if (ret == 0 && !length)
		ret = refuse(queue, client, "a command that is not understood in its buffer");
	sim_os_free(dwords);
	return ret < 0 ? ret : 1;
}

/* 1: done, 0: it has to wait. */
static int run_by_type(struct sim_queue *queue, const struct sim_client *client,
		       const union aql_packet *packet, u32 *steps)
{
	switch (aql_packet_type(packet)) {
	case AQL_DISPATCH:
		return sim_aql_run_kernel(queue, client, &packet->dispatch, steps);
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
		return aql_packet_look_at_barrier(packet, read_value, (void *)client);
	default:
		if (packet->pm4.format == AQL_VENDOR_PM4)
			return run_pm4(queue, client, &packet->pm4);
		return aql_packet_look_at_value(&packet->value, read_value, (void *)client);
	}
}

/* What a thread that waits for the signal relies on: times first, then the value, then its event.
 */
static int complete(struct sim_queue *queue, const struct sim_client *client, u64 at)
{
	u64 times[2] = { queue->began, sim_gpu_clock() }, id;
	struct aql_signal signal;
	int ret;

	if (!at)
		return 0;
	ret = sim_client_read(client, at, &signal, sizeof(signal));
	if (ret < 0)
		return ret;
	if (at % 64 || signal.kind != AQL_SIGNAL_USER)
		return refuse(queue, client, "a wrong completion signal");
	ret = sim_client_write(client, at + offsetof(struct aql_signal, start), times,
			       sizeof(times));
	if (ret == 0)
		ret = sim_client_add(client, at + offsetof(struct aql_signal, value), 8, ~0ull);
	if (ret < 0 || !signal.mailbox)
		return ret;
	id = signal.event_id;
	ret = sim_client_write(client, signal.mailbox, &id, sizeof(id));
	if (ret == 0)
		sim_events_trap(queue->pdd->process, signal.event_id);
	return ret;
}

/* The packet's place in the ring is free before its completion can be seen. */
static int retire(struct sim_queue *queue, const struct sim_client *client, u64 at, u64 completion)
{
	u16 header = AQL_INVALID;
	int ret;

	ret = sim_client_write(client, at, &header, sizeof(header));
	if (ret < 0)
		return ret;
	queue->rptr++;
	ret = sim_client_write(client, queue->rptr_addr, &queue->rptr, sizeof(queue->rptr));
	if (ret == 0)
		ret = complete(queue, client, completion);
	queue->began = 0;
	queue->pdd->process->packets++;
	return ret < 0 ? ret : 1;
}

int sim_aql_run_packet(struct sim_queue *queue, const struct sim_client *client, u32 *steps)
{
	u64 at = queue->ring_addr + queue->rptr * AQL_PACKET_BYTES % queue->ring_size;
	union aql_packet packet;
	const char *fault;
	int ret;

	ret = sim_client_read(client, at, &packet, sizeof(packet));
	if (ret < 0)
		return ret;
	if (aql_packet_type(&packet) == AQL_INVALID)
		return 0;
	if (!queue->began) {
		fault = aql_packet_find_fault(&packet);
		if (fault)
			return refuse(queue, client, fault);
		queue->began = sim_gpu_clock();
	}
	ret = run_by_type(queue, client, &packet, steps);
	/* the last eight bytes of all types */
	return ret > 0 ? retire(queue, client, at, packet.dispatch.completion) : ret;
}
