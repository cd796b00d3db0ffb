// SPDX-License-Identifier: GPL-2.0-only
/* Decodes and runs SDMA packets. Each bit without a meaning here must be zero. cs.c and job.c
 * submit command buffers, engine.c reads rings; they handle errors. */
#include "sdma.h"

enum {
	OP_NOP = 0,
	OP_COPY = 1,
	OP_ATOMIC = 10,
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

static int run_queue_copy(const struct sim_client *client, const struct sim_sdma_head *head,
			  struct sim_sdma_result *result)
{
	result->length = COPY_DWORDS;
	if (check_copy(head->dwords, head->available) < 0)
		return -EINVAL;
	return run_copy(client, head->dwords, &result->bytes);
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

int sim_sdma_run_packet(const struct sim_client *client, const struct sim_sdma_head *head,
			struct sim_sdma_result *ret_result)
{
	struct sim_sdma_result result = { .length = 0 };
	u32 op = op_of(head->dwords[0]);
	int ret = -EINVAL;

	if (op == OP_NOP)
		ret = nop_length(head->dwords[0], head->available, &result.length);
	else if (op == OP_COPY)
		ret = run_queue_copy(client, head, &result);
	else if (op == OP_ATOMIC)
		ret = run_atomic(client, head, &result);
	if (ret == -EINVAL)
		sim_violation(client->sim,
			      "%s: bad packet at 0x%llx"
			      ", %u dwords left: %08x %08x %08x %08x",
			      client->who, head->addr, head->available, head->dwords[0],
			      head->dwords[1], head->dwords[2], head->dwords[3]);
	if (ret == 0)
		*ret_result = result;
	return ret;
}
