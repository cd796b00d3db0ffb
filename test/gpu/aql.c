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

enum packet_type {
	TYPE_VENDOR = 0,
	TYPE_INVALID = 1,
	TYPE_DISPATCH = 2,
	TYPE_BARRIER_AND = 3,
	TYPE_BARRIER_OR = 5,
};

enum { VENDOR_PM4 = 1, VENDOR_BARRIER_VALUE = 2 };

#define PM4_JUMP        (3u << 30 | PACKET3_INDIRECT_BUFFER << 8 | 2u << 16) /* 3 dwords follow */
#define PM4_REMAINING   10u /* dwords of the AQL packet behind the jump */
#define PM4_SIZE_MASK   0xfffffu
#define SIGNAL_USER     1
#define BARRIER_SIGNALS 5u

struct dispatch {
	uint16_t header, setup, workgroup[3], reserved1;
	uint32_t grid[3], private_bytes, group_bytes;
	uint64_t kernel, kernarg, reserved2, completion;
};

struct barrier {
	uint16_t header, reserved1;
	uint32_t reserved2;
	uint64_t signals[BARRIER_SIGNALS], reserved3, completion;
};

struct barrier_value {
	uint16_t header;
	uint8_t format, reserved1;
	uint32_t reserved2;
	uint64_t signal;
	int64_t value, mask;
	uint32_t condition, reserved3;
	uint64_t reserved4, reserved5, completion;
};

struct pm4_jump {
	uint16_t header, format;
	uint32_t jump[4], remaining, reserved[8];
	uint64_t completion;
};

union packet {
	uint16_t header;
	struct dispatch dispatch;
	struct barrier barrier;
	struct barrier_value barrier_value;
	struct pm4_jump pm4;
};
_Static_assert(sizeof(union packet) == AQL_PACKET_BYTES, "AQL");
_Static_assert(sizeof(struct pm4_jump) == AQL_PACKET_BYTES, "AQL");

struct signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event_id, reserved1;
	uint64_t start, end, queue, reserved2;
};
_Static_assert(sizeof(struct signal) == 64, "amd_signal_t");

static uint32_t type_of(const union packet *packet)
{
	return packet->header & 0xff;
}

/* Of scopes, 3 has no meaning. */
static const char *find_header_fault(uint16_t header)
{
	if (header >> 13)
		return "bits of the header that have no meaning";
	return (header >> 9 & 3) == 3 || (header >> 11 & 3) == 3 ? "a fence scope of 3" : NULL;
}

static const char *find_dispatch_fault(const struct dispatch *packet)
{
	uint32_t dimensions = packet->setup, i;

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
		return "private memory, which is not modelled";
	return packet->kernel % 64 || !packet->kernel ? "a kernel object that is not aligned"
						      : NULL;
}

static const char *find_barrier_fault(const struct barrier *packet)
{
	return packet->reserved1 || packet->reserved2 || packet->reserved3
		       ? "reserved fields that are not 0"
		       : NULL;
}

/* HIP 6.4.3 leaves random values in the other reserved fields. */
static const char *find_value_fault(const struct barrier_value *packet)
{
	if (packet->reserved1)
		return "reserved fields that are not 0";
	return packet->condition > 3 ? "an unknown condition" : NULL;
}

static const char *find_pm4_fault(const struct pm4_jump *packet)
{
	uint32_t i;

	if (packet->jump[0] != PM4_JUMP || packet->jump[1] & 3 || packet->jump[2] >> 16 ||
	    packet->jump[3] >> 20 != INDIRECT_BUFFER_VALID >> 20)
		return "a wrong jump";
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

static int refuse(struct gpu *gpu, const struct queue *queue, const char *fault)
{
	report_violation(&gpu->report, "AQL packet %llu of doorbell %#x has %s",
			 (unsigned long long)queue->rptr / AQL_PACKET_BYTES, queue->doorbell,
			 fault);
	return -EINVAL;
}

static int read_value(struct gpu *gpu, const struct queue *queue, uint64_t signal,
		      int64_t *ret_value)
{
	return memory_read(gpu, &queue->space, signal + offsetof(struct signal, value), ret_value,
			   sizeof(*ret_value));
}

/* 1: the signals are 0, all or one of them; 0: not yet. A barrier without signals is satisfied. */
static int look_at_barrier(struct gpu *gpu, const struct queue *queue, const struct barrier *packet,
			   bool all)
{
	uint32_t waited = 0, zero = 0, i;
	int64_t value;
	int ret;

	for (i = 0; i < BARRIER_SIGNALS; i++) {
		if (!packet->signals[i])
			continue;
		ret = read_value(gpu, queue, packet->signals[i], &value);
		if (ret < 0)
			return ret;
		waited++;
		zero += value == 0;
	}
	return all ? zero == waited : zero || !waited;
}

static int look_at_value(struct gpu *gpu, const struct queue *queue,
			 const struct barrier_value *packet)
{
	int64_t value;
	int ret;

	if (!packet->signal)
		return 1;
	ret = read_value(gpu, queue, packet->signal, &value);
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

/* The command processor leaves the ring for the commands; aql_step() comes back at their end. */
static int enter_buffer(struct queue *queue, const struct pm4_jump *packet)
{
	uint64_t address = packet->jump[1] | (uint64_t)packet->jump[2] << 32;

	if (queue->aql->in_buffer)
		return 1;
	queue->aql->in_buffer = true;
	queue->ib.space = queue->space;
	queue->ib.address = address;
	queue->ib.end = address + 4ull * (packet->jump[3] & PM4_SIZE_MASK);
	return 0;
}

static int run_dispatch(struct gpu *gpu, struct queue *queue, const struct dispatch *packet,
			uint64_t at)
{
	struct aql_kernel kernel = {
		.packet = at,
		.object = packet->kernel,
		.kernarg = packet->kernarg,
		.lds_bytes = packet->group_bytes,
	};
	uint32_t i;

	for (i = 0; i < 3; i++) {
		kernel.grid[i] = packet->grid[i];
		kernel.workgroup[i] = packet->workgroup[i];
	}
	return aql_run_kernel(gpu, queue, &kernel);
}

/* 1: it is complete; 0: it has come further; -EAGAIN: it waits. */
static int run_by_type(struct gpu *gpu, struct queue *queue, const union packet *packet,
		       uint64_t at)
{
	int ret;

	switch (type_of(packet)) {
	case TYPE_DISPATCH:
		return run_dispatch(gpu, queue, &packet->dispatch, at);
	case TYPE_BARRIER_AND:
	case TYPE_BARRIER_OR:
		ret = look_at_barrier(gpu, queue, &packet->barrier,
				      type_of(packet) == TYPE_BARRIER_AND);
		return ret ? ret : -EAGAIN;
	default:
		if (packet->pm4.format == VENDOR_PM4)
			return enter_buffer(queue, &packet->pm4);
		ret = look_at_value(gpu, queue, &packet->barrier_value);
		return ret ? ret : -EAGAIN;
	}
}

/* A thread that waits for the signal relies on this order: times, the value, then its event. */
static int complete(struct gpu *gpu, struct queue *queue, uint64_t at)
{
	uint64_t times[2] = { queue->aql->began, gpu_clock() }, n = sizeof(int64_t);
	struct signal signal;
	int64_t *value;
	int ret;

	if (!at)
		return 0;
	ret = memory_read(gpu, &queue->space, at, &signal, sizeof(signal));
	if (ret < 0)
		return ret;
	if (at % 64 || signal.kind != SIGNAL_USER)
		return refuse(gpu, queue, "a wrong completion signal");
	ret = memory_write(gpu, &queue->space, at + offsetof(struct signal, start), times,
			   sizeof(times));
	if (ret < 0)
		return ret;
	value = memory_at(gpu, &queue->space, at + offsetof(struct signal, value), ACCESS_WRITE,
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

/* The packet's place in the ring is free before its completion can be seen. */
static int retire(struct gpu *gpu, struct queue *queue, uint64_t at, uint64_t completion)
{
	uint16_t header = TYPE_INVALID;
	int ret;

	ret = memory_write(gpu, &queue->space, at, &header, sizeof(header));
	if (ret < 0)
		return ret;
	queue->rptr += AQL_PACKET_BYTES;
	gpu->counters.aql_packets++;
	if (queue->rptr_address)
		ret = memory_write64(gpu, &queue->space, queue->rptr_address,
				     queue->rptr / AQL_PACKET_BYTES);
	if (ret == 0)
		ret = complete(gpu, queue, completion);
	queue->aql->began = 0;
	queue->aql->in_buffer = false;
	return ret;
}

static int begin(struct gpu *gpu, struct queue *queue, const union packet *packet)
{
	const char *fault;

	if (!queue->aql)
		queue->aql = calloc(1, sizeof(*queue->aql));
	if (!queue->aql)
		return -ENOMEM;
	if (queue->aql->began)
		return 0;
	fault = find_fault(packet);
	if (fault)
		return refuse(gpu, queue, fault);
	queue->aql->began = gpu_clock();
	report_log(&gpu->report, REPORT_PACKETS, "AQL packet %llu of doorbell %#x: type %u",
		   (unsigned long long)queue->rptr / AQL_PACKET_BYTES, queue->doorbell,
		   type_of(packet));
	return 0;
}

int aql_step(struct gpu *gpu, struct queue *queue)
{
	uint64_t at = queue->base + queue->rptr % queue->size_bytes;
	union packet packet;
	int ret;

	if (queue_is_in_ib(queue))
		return pm4_step(gpu, queue);
	ret = memory_read(gpu, &queue->space, at, &packet, sizeof(packet));
	if (ret < 0)
		return ret;
	if (type_of(&packet) == TYPE_INVALID)
		return -EAGAIN;
	ret = begin(gpu, queue, &packet);
	if (ret == 0)
		ret = run_by_type(gpu, queue, &packet, at);
	/* the last eight bytes of all types */
	return ret > 0 ? retire(gpu, queue, at, packet.dispatch.completion) : ret;
}
