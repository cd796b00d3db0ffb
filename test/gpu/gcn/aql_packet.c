// SPDX-License-Identifier: GPL-2.0-only
/* Checks packets of AQL queues, and the conditions of those that wait. */
#include "aql_packet.h"

#define PM4_JUMP      0xc0023f00u /* INDIRECT_BUFFER, with 3 dwords behind it (soc15d.h) */
#define PM4_VALID     (1u << 23)
#define PM4_REMAINING 10u /* dwords of the AQL packet behind the jump */

_Static_assert(sizeof(union aql_packet) == AQL_PACKET_BYTES, "AQL");
_Static_assert(sizeof(struct aql_pm4) == AQL_PACKET_BYTES, "AQL");
_Static_assert(sizeof(struct aql_signal) == 64, "amd_signal_t");

u32 aql_packet_type(const union aql_packet *packet)
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

/* HIP 5.7.1 leaves random values in reserved2 where RCCL launches kernels of several GPUs. */
static const char *find_dispatch_fault(const struct aql_dispatch *packet)
{
	u32 dimensions = packet->setup, i;

	if (dimensions < 1 || dimensions > 3)
		return "a number of dimensions that is not 1, 2 or 3";
	if (packet->reserved1)
		return "reserved fields that are not 0";
	for (i = 0; i < 3; i++)
		if (!packet->workgroup[i] || !packet->grid[i])
			return "a size of 0";
	for (i = dimensions; i < 3; i++)
		if (packet->workgroup[i] != 1 || packet->grid[i] != 1)
			return "a size in a dimension that it does not have";
	return packet->kernel % 64 || !packet->kernel ? "a kernel object that is not aligned"
						      : NULL;
}

static const char *find_barrier_fault(const struct aql_barrier *packet)
{
	return packet->reserved1 || packet->reserved2 || packet->reserved3
		       ? "reserved fields that are not 0"
		       : NULL;
}

/* HIP 6.4.3 leaves random values in the other reserved fields. */
static const char *find_value_fault(const struct aql_value *packet)
{
	if (packet->reserved1)
		return "reserved fields that are not 0";
	return packet->condition > 3 ? "an unknown condition" : NULL;
}

static const char *find_pm4_fault(const struct aql_pm4 *packet)
{
	u32 i;

	if (packet->jump[0] != PM4_JUMP || packet->jump[1] & 3 || packet->jump[2] >> 16 ||
	    packet->jump[3] >> 20 != PM4_VALID >> 20)
		return "a wrong jump";
	for (i = 0; i < ARRAY_SIZE(packet->reserved); i++)
		if (packet->reserved[i])
			return "reserved fields that are not 0";
	return packet->remaining != PM4_REMAINING ? "a wrong number of remaining dwords" : NULL;
}

const char *aql_packet_find_fault(const union aql_packet *packet)
{
	const char *fault = find_header_fault(packet->header);

	if (fault)
		return fault;
	switch (aql_packet_type(packet)) {
	case AQL_DISPATCH:
		return find_dispatch_fault(&packet->dispatch);
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
		return find_barrier_fault(&packet->barrier);
	case AQL_VENDOR:
		if (packet->value.format == AQL_VENDOR_VALUE)
			return find_value_fault(&packet->value);
		if (packet->pm4.format == AQL_VENDOR_PM4)
			return find_pm4_fault(&packet->pm4);
		return "an unknown vendor format";
	default:
		return "an unknown type";
	}
}

/* A barrier without signals is satisfied. */
int aql_packet_look_at_barrier(const union aql_packet *packet, aql_read_value read, void *argument)
{
	u32 waited = 0, zero = 0, i;
	s64 value;
	int ret;

	for (i = 0; i < AQL_BARRIER_COUNT; i++) {
		if (!packet->barrier.signals[i])
			continue;
		ret = read(argument, packet->barrier.signals[i], &value);
		if (ret < 0)
			return ret;
		waited++;
		zero += value == 0;
	}
	return aql_packet_type(packet) == AQL_BARRIER_AND ? zero == waited : zero || !waited;
}

int aql_packet_look_at_value(const struct aql_value *packet, aql_read_value read, void *argument)
{
	s64 value;
	int ret;

	if (!packet->signal)
		return 1;
	ret = read(argument, packet->signal, &value);
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
