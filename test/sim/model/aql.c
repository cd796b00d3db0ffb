// SPDX-License-Identifier: GPL-2.0-only
/*
 * The packet processor of AQL queues: checks packets, waits where they say so, and completes them.
 * Formats are those of the HSA specification and of hsa_ext_amd.h (vendor packets), signals those
 * of amd_hsa_signal.h. A packet begins when the one before is complete, so the barrier bit and the
 * fences have nothing to do. */
#include "aql.h"

enum {
	TYPE_VENDOR = 0,
	TYPE_INVALID = 1,
	TYPE_DISPATCH = 2,
	TYPE_BARRIER_AND = 3,
	TYPE_BARRIER_OR = 5,
};

enum { VENDOR_PM4 = 1, VENDOR_BARRIER_VALUE = 2 };

/* PM4 (soc15d.h, Linux 6.12): packets of type 3, whose header counts the dwords behind it less 1.
 */
#define PM4_INDIRECT_BUFFER 0xc0023f00u
#define PM4_VALID           (1u << 23)
#define PM4_NOP             0x10u
#define PM4_ACQUIRE_MEM     0x58u
#define PM4_ACQUIRE_DWORDS  7u
#define PM4_MAX_DWORDS      1024u
#define PM4_REMAINING       10u /* dwords of the AQL packet behind the jump */

#define SIGNAL_USER     1
#define BARRIER_SIGNALS 5u

struct dispatch {
	u16 header, setup, workgroup[3], reserved1;
	u32 grid[3], private_bytes, group_bytes;
	u64 kernel, kernarg, reserved2, completion;
};

struct barrier {
	u16 header, reserved1;
	u32 reserved2;
	u64 signals[BARRIER_SIGNALS], reserved3, completion;
};

struct barrier_value {
	u16 header;
	u8 format, reserved1;
	u32 reserved2;
	u64 signal;
	s64 value, mask;
	u32 condition, reserved3;
	u64 reserved4, reserved5, completion;
};

struct pm4 {
	u16 header, format;
	u32 jump[4], remaining, reserved[8];
	u64 completion;
};

union packet {
	u16 header;
	struct dispatch dispatch;
	struct barrier barrier;
	struct barrier_value barrier_value;
	struct pm4 pm4;
};
_Static_assert(sizeof(union packet) == SIM_AQL_PACKET_BYTES, "AQL");
_Static_assert(sizeof(struct pm4) == SIM_AQL_PACKET_BYTES, "AQL");

struct signal {
	s64 kind, value;
	u64 mailbox;
	u32 event_id, reserved1;
	u64 start, end, queue, reserved2;
};
_Static_assert(sizeof(struct signal) == 64, "amd_signal_t");

static u32 type_of(const union packet *packet)
{
	return packet->header & 0xff;
}

/* Of scopes, 3 has no meaning. */
static const char *find_header_fault(u16 header)
{
	if (header >> 13)
		return "bits of the header that have no meaning";
	return (header >> 9 & 3) == 3 || (header >> 11 & 3) == 3 ? "a fence scope of 3" : NULL;
}

static const char *find_dispatch_fault(const struct dispatch *packet)
{
	u32 dimensions = packet->setup, i;

	if (dimensions < 1 || dimensions > 3)
		return "a number of dimensions that is not 1, 2 or 3";
	if (packet->reserved1 || packet->reserved2)
		return "reserved fields that are not 0";
	for (i = 0; i < 3; i++)
		if (!packet->workgroup[i] || !packet->grid[i])
			return "a size of 0";
	for (i = dimensions; i < 3; i++)
		if (packet->workgroup[i] != 1 || packet->grid[i] != 1)
			return "a size in a dimension that it does not have";
	if (packet->private_bytes)
		return "private memory, which is not provided";
	return packet->kernel % 64 || !packet->kernel ? "a kernel object that is not aligned"
						      : NULL;
}

static const char *find_barrier_fault(const struct barrier *packet)
{
	return packet->reserved1 || packet->reserved2 || packet->reserved3
		       ? "reserved fields that are not 0"
		       : NULL;
}

/* HIP 6.4.3 leaves whatever was on its stack in the other reserved fields. */
static const char *find_value_fault(const struct barrier_value *packet)
{
	if (packet->reserved1)
		return "reserved fields that are not 0";
	return packet->condition > 3 ? "an unknown condition" : NULL;
}

static const char *find_pm4_fault(const struct pm4 *packet)
{
	u32 i;

	if (packet->jump[0] != PM4_INDIRECT_BUFFER || packet->jump[1] & 3 ||
	    packet->jump[2] >> 16 || packet->jump[3] >> 20 != PM4_VALID >> 20)
		return "a wrong jump";
	if ((packet->jump[3] & 0xfffff) > PM4_MAX_DWORDS)
		return "a long command buffer";
	for (i = 0; i < ARRAY_SIZE(packet->reserved); i++)
		if (packet->reserved[i])
			return "reserved fields that are not 0";
	return packet->remaining != PM4_REMAINING ? "a wrong number of remaining dwords" : NULL;
}

static const char *find_fault(const union packet *packet)
{
	const char *fault = find_header_fault(packet->header);

	if (fault)
		return fault;
	switch (type_of(packet)) {
	case TYPE_DISPATCH:
		return find_dispatch_fault(&packet->dispatch);
	case TYPE_BARRIER_AND:
	case TYPE_BARRIER_OR:
		return find_barrier_fault(&packet->barrier);
	case TYPE_VENDOR:
		if (packet->barrier_value.format == VENDOR_BARRIER_VALUE)
			return find_value_fault(&packet->barrier_value);
		if (packet->pm4.format == VENDOR_PM4)
			return find_pm4_fault(&packet->pm4);
		return "an unknown vendor format";
	default:
		return "an unknown type";
	}
}

static int refuse(const struct sim_queue *queue, const struct sim_client *client, const char *fault)
{
	sim_violation(client->sim, "%s: AQL packet %" SIM_PRIu64 " has %s", client->who,
		      queue->rptr, fault);
	return -EINVAL;
}

static int read_value(const struct sim_client *client, u64 signal, s64 *ret_value)
{
	return sim_client_read(client, signal + offsetof(struct signal, value), ret_value,
			       sizeof(*ret_value));
}

/* 1: the signals are 0, all or one of them, 0: not yet. A barrier without signals is satisfied. */
static int look_at_barrier(const struct sim_client *client, const struct barrier *packet, bool all)
{
	u32 waited = 0, zero = 0, i;
	s64 value;
	int ret;

	for (i = 0; i < BARRIER_SIGNALS; i++) {
		if (!packet->signals[i])
			continue;
		ret = read_value(client, packet->signals[i], &value);
		if (ret < 0)
			return ret;
		waited++;
		zero += value == 0;
	}
	return all ? zero == waited : zero || !waited;
}

static int look_at_value(const struct sim_client *client, const struct barrier_value *packet)
{
	s64 value;
	int ret;

	if (!packet->signal)
		return 1;
	ret = read_value(client, packet->signal, &value);
	if (ret < 0)
		return ret;
	value &= packet->mask;
	switch (packet->condition) {
	case 0:
		return value == packet->value;
	case 1:
		return value != packet->value;
	case 2:
		return value < packet->value;
	default:
		return value >= packet->value;
	}
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
		   const struct pm4 *packet)
{
	u32 count = packet->jump[3] & 0xfffff, at = 0, length = 1;
	u64 addr = packet->jump[1] | (u64)packet->jump[2] << 32;
	u32 *dwords = sim_os_alloc(count ? 4ull * count : 4);
	int ret = dwords ? sim_client_read(client, addr, dwords, 4ull * count) : -ENOMEM;

	for (; ret == 0 && length && at < count; at += length)
		length = pm4_length(dwords, at, count);
	if (ret == 0 && !length)
		ret = refuse(queue, client, "a command that is not understood in its buffer");
	sim_os_free(dwords);
	return ret < 0 ? ret : 1;
}

static int run_dispatch(struct sim_queue *queue, const struct sim_client *client,
			const struct dispatch *packet, u32 *steps)
{
	struct sim_aql_kernel kernel = {
		.packet = queue->ring_addr + queue->rptr * SIM_AQL_PACKET_BYTES % queue->ring_size,
		.object = packet->kernel,
		.kernarg = packet->kernarg,
		.group_bytes = packet->group_bytes,
	};
	u32 i;
	int ret;

	for (i = 0; i < 3; i++) {
		kernel.grid[i] = packet->grid[i];
		kernel.workgroup[i] = packet->workgroup[i];
	}
	if (!queue->dispatch) {
		ret = sim_aql_begin(queue, client, &kernel);
		if (ret < 0)
			return ret;
	}
	return sim_aql_continue(queue, client, steps);
}

/* 1: done, 0: it has to wait. */
static int run_by_type(struct sim_queue *queue, const struct sim_client *client,
		       const union packet *packet, u32 *steps)
{
	switch (type_of(packet)) {
	case TYPE_DISPATCH:
		return run_dispatch(queue, client, &packet->dispatch, steps);
	case TYPE_BARRIER_AND:
	case TYPE_BARRIER_OR:
		return look_at_barrier(client, &packet->barrier,
				       type_of(packet) == TYPE_BARRIER_AND);
	default:
		if (packet->pm4.format == VENDOR_PM4)
			return run_pm4(queue, client, &packet->pm4);
		return look_at_value(client, &packet->barrier_value);
	}
}

/* What a thread that waits for the signal relies on: times first, then the value, then its event.
 */
static int complete(struct sim_queue *queue, const struct sim_client *client, u64 at)
{
	u64 times[2] = { queue->began, sim_gpu_clock() }, id;
	struct signal signal;
	int ret;

	if (!at)
		return 0;
	ret = sim_client_read(client, at, &signal, sizeof(signal));
	if (ret < 0)
		return ret;
	if (at % 64 || signal.kind != SIGNAL_USER)
		return refuse(queue, client, "a wrong completion signal");
	ret = sim_client_write(client, at + offsetof(struct signal, start), times, sizeof(times));
	if (ret == 0)
		ret = sim_client_add(client, at + offsetof(struct signal, value), 8, ~0ull);
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
	u16 header = TYPE_INVALID;
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
	u64 at = queue->ring_addr + queue->rptr * SIM_AQL_PACKET_BYTES % queue->ring_size;
	union packet packet;
	const char *fault;
	int ret;

	ret = sim_client_read(client, at, &packet, sizeof(packet));
	if (ret < 0)
		return ret;
	if (type_of(&packet) == TYPE_INVALID)
		return 0;
	if (!queue->began) {
		fault = find_fault(&packet);
		if (fault)
			return refuse(queue, client, fault);
		queue->began = sim_gpu_clock();
	}
	ret = run_by_type(queue, client, &packet, steps);
	/* the last eight bytes of all types */
	return ret > 0 ? retire(queue, client, at, packet.dispatch.completion) : ret;
}
