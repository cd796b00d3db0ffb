// SPDX-License-Identifier: GPL-2.0-only
/* Decodes and runs SDMA packets. Each bit without a meaning here must be zero. cs.c and job.c
 * submit command buffers, engine.c reads rings; they handle errors. */
#include "sdma.h"

enum {
	OP_NOP = 0,
	OP_COPY = 1,
	OP_WRITE = 2,
	OP_FENCE = 5,
	OP_TRAP = 6,
	OP_POLL_REGMEM = 8,
	OP_ATOMIC = 10,
	OP_CONST_FILL = 11,
};

#define COPY_DWORDS  7u
#define COUNT_BITS   0x3fffffu
#define ATOMIC_ADD32 15u
#define ATOMIC_ADD64 47u

static u64 join(const u32 *dwords)
{
	return dwords[0] | (u64)dwords[1] << 32;
}

static u32 op_of(u32 header)
{
	return header & 0xff;
}

static u32 sub_op_of(u32 header)
{
	return header >> 8 & 0xff;
}

/* Bits 29:16 of a NOP are the number of dwords behind it to skip. */
static int nop_length(u32 header, u32 available, u32 *ret_length)
{
	u32 length = 1 + (header >> 16 & 0x3fff);

	if (sub_op_of(header) || header >> 30 || length > available)
		return -EINVAL;
	*ret_length = length;
	return 0;
}

static int check_copy(const u32 *dw, u32 available)
{
	if (available < COPY_DWORDS || dw[0] != OP_COPY)
		return -EINVAL;
	if (dw[1] & ~COUNT_BITS || dw[2])
		return -EINVAL;
	return 0;
}

static int run_copy(const struct sim_client *client, const u32 *dw, u64 *bytes)
{
	u64 size = (u64)dw[1] + 1;

	*bytes += size;
	return sim_client_copy(client, join(dw + 5), join(dw + 3), size);
}

static int ib_packet_length(const u32 *dw, u32 available, u32 *ret_length)
{
	if (op_of(dw[0]) == OP_NOP)
		return nop_length(dw[0], available, ret_length);
	*ret_length = COPY_DWORDS;
	return check_copy(dw, available);
}

static int check_ib(const struct sim_client *client, const u32 *dwords, u32 count)
{
	u32 at = 0, length;

	while (at < count) {
		if (ib_packet_length(dwords + at, count - at, &length) < 0) {
			sim_violation(client->sim,
				      "%s: bad packet at dword %u of %u: %08x %08x %08x",
				      client->who, at, count, dwords[at],
				      at + 1 < count ? dwords[at + 1] : 0,
				      at + 2 < count ? dwords[at + 2] : 0);
			return -EINVAL;
		}
		at += length;
	}
	return 0;
}

int sim_sdma_run_ib(const struct sim_client *client, const u32 *dwords, u32 count, u64 *ret_bytes)
{
	u32 at = 0, length = 0;
	u64 bytes = 0;
	int ret;

	ret = check_ib(client, dwords, count);
	for (; ret == 0 && at < count; at += length) {
		ret = ib_packet_length(dwords + at, count - at, &length);
		if (ret == 0 && op_of(dwords[at]) == OP_COPY)
			ret = run_copy(client, dwords + at, &bytes);
	}
	*ret_bytes = bytes;
	return ret;
}

static int run_nop(const struct sim_client *client, const struct sim_sdma_head *head,
		   struct sim_sdma_result *result)
{
	(void)client;
	return nop_length(head->dwords[0], head->available, &result->length);
}

static int run_queue_copy(const struct sim_client *client, const struct sim_sdma_head *head,
			  struct sim_sdma_result *result)
{
	result->length = COPY_DWORDS;
	if (check_copy(head->dwords, head->available) < 0)
		return -EINVAL;
	return run_copy(client, head->dwords, &result->bytes);
}

static int run_write(const struct sim_client *client, const struct sim_sdma_head *head,
		     struct sim_sdma_result *result)
{
	const u32 *dw = head->dwords;
	u32 count;

	if (head->available < 5 || dw[0] != OP_WRITE || dw[3] >> 20 || dw[1] & 3)
		return -EINVAL;
	count = dw[3] + 1;
	if (count > head->available - 4)
		return -EINVAL;
	result->length = 4 + count;
	result->bytes = 4ull * count;
	return sim_client_copy(client, join(dw + 1), head->addr + 16, result->bytes);
}

static int run_fence(const struct sim_client *client, const struct sim_sdma_head *head,
		     struct sim_sdma_result *result)
{
	const u32 *dw = head->dwords;

	/* bits 18:16 choose the memory type */
	if (head->available < 4 || (dw[0] & ~0x70000u) != OP_FENCE || dw[1] & 3)
		return -EINVAL;
	result->length = 4;
	return sim_client_write(client, join(dw + 1), dw + 3, 4);
}

static int run_trap(const struct sim_client *client, const struct sim_sdma_head *head,
		    struct sim_sdma_result *result)
{
	const u32 *dw = head->dwords;

	(void)client;
	if (head->available < 2 || dw[0] != OP_TRAP || dw[1] >> 28)
		return -EINVAL;
	result->length = 2;
	result->trap = true;
	result->trap_context = dw[1];
	return 0;
}

static bool poll_satisfied(u32 function, u32 value, u32 reference)
{
	switch (function) {
	case 0:
		return true;
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
	default:
		return value > reference;
	}
}

static int run_poll(const struct sim_client *client, const struct sim_sdma_head *head,
		    struct sim_sdma_result *result)
{
	const u32 *dw = head->dwords;
	u32 function = dw[0] >> 28 & 7;
	u32 value;
	int ret;

	result->length = 6;
	if (head->available < 6 || (dw[0] & 0x0fffff00u) || !(dw[0] >> 31) || function == 7 ||
	    dw[1] & 3)
		return -EINVAL;
	ret = sim_client_read(client, join(dw + 1), &value, sizeof(value));
	if (ret < 0)
		return ret;
	result->again = !poll_satisfied(function, value & dw[4], dw[3]);
	return 0;
}

static int run_atomic(const struct sim_client *client, const struct sim_sdma_head *head,
		      struct sim_sdma_result *result)
{
	const u32 *dw = head->dwords;
	u32 operation = dw[0] >> 25;
	u64 addr;
	u32 size = operation == ATOMIC_ADD64 ? 8 : 4;

	if (head->available < 8 || dw[0] & 0x01ffff00u ||
	    (operation != ATOMIC_ADD32 && operation != ATOMIC_ADD64))
		return -EINVAL;
	addr = join(dw + 1);
	if (addr % size)
		return -EINVAL;
	result->length = 8;
	return sim_client_add(client, addr, size, join(dw + 3));
}

static int run_fill(const struct sim_client *client, const struct sim_sdma_head *head,
		    struct sim_sdma_result *result)
{
	const u32 *dw = head->dwords;
	u64 size = (u64)dw[4] + 1;

	/* bits 31:30: the unit, 2 = dword */
	if (head->available < 5 || dw[0] != (OP_CONST_FILL | 2u << 30) || dw[4] & ~COUNT_BITS)
		return -EINVAL;
	if (size % 4 || dw[1] & 3)
		return -EINVAL;
	result->length = 5;
	result->bytes = size;
	return sim_client_fill(client, join(dw + 1), dw[3], size);
}

typedef int (*packet_function)(const struct sim_client *client, const struct sim_sdma_head *head,
			       struct sim_sdma_result *result);

static const packet_function functions[] = {
	[OP_NOP] = run_nop,       [OP_COPY] = run_queue_copy, [OP_WRITE] = run_write,
	[OP_FENCE] = run_fence,   [OP_TRAP] = run_trap,       [OP_POLL_REGMEM] = run_poll,
	[OP_ATOMIC] = run_atomic, [OP_CONST_FILL] = run_fill,
};

int sim_sdma_run_packet(const struct sim_client *client, const struct sim_sdma_head *head,
			struct sim_sdma_result *ret_result)
{
	struct sim_sdma_result result = { .length = 0 };
	u32 op = op_of(head->dwords[0]);
	int ret = -EINVAL;

	if (op < ARRAY_SIZE(functions) && functions[op])
		ret = functions[op](client, head, &result);
	if (ret == -EINVAL)
		sim_violation(client->sim,
			      "%s: bad packet at 0x%" SIM_PRIx64
			      ", %u dwords left: %08x %08x %08x %08x",
			      client->who, head->addr, head->available, head->dwords[0],
			      head->dwords[1], head->dwords[2], head->dwords[3]);
	if (ret == 0)
		*ret_result = result;
	return ret;
}
