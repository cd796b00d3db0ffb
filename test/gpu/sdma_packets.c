// SPDX-License-Identifier: GPL-2.0-only
/* Packets of the copy engines (vega10_sdma_pkt_open.h). A bit that has no meaning in the packet's
 * table is not checked, because user space leaves some of them undefined. */
#include <errno.h>
#include <ivsrcid/sdma0/irqsrcs_sdma0_4_0.h>
#include <string.h>
#include <vega10_sdma_pkt_open.h>

#include "gpu.h"
#include "ih.h"
#include "regs.h"

/* PKT(dw[3], WRITE_UNTILED_DW_3, count) */
#define PKT(dword, name, field) \
	((dword) >> SDMA_PKT_##name##_##field##_shift & SDMA_PKT_##name##_##field##_mask)

#define MAX_DWORDS 13u
/* SDMA 4.4 counts copies and fills with 30 bits, of which the header knows 22. */
#define COUNT_MASK  0x3fffffffu
#define FILL_DWORDS 2u /* the unit of CONSTANT_FILL: dwords, not bytes */
/* TC_OP_ATOMIC_ADD_RTN of the hardware's L2, for 32 and 64 bits. */
#define ATOMIC_ADD32 15u
#define ATOMIC_ADD64 47u
#define CHUNK_DWORDS 1024u

static uint64_t join(const uint32_t *dwords)
{
	return dwords[0] | (uint64_t)dwords[1] << 32;
}

static int run_nop(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	(void)gpu;
	queue->packet_dwords += PKT(dw[0], NOP_HEADER, count);
	return 0;
}

/* The count is that of bytes less one. The driver writes no page table entries by a copy whose
 * count is -1, for which hardware copies 1 GiB (copy_of_nothing.c). That would end the guest, so it
 * is left out here. */
static bool copies_nothing(const struct queue *queue, uint32_t count)
{
	return !queue->is_user && !queue_space(queue)->vmid && count == UINT32_MAX;
}

static int run_linear_copy(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint64_t size_bytes = (dw[1] & COUNT_MASK) + 1ull;
	const struct space *space = queue_space(queue);
	int ret;

	queue->packet_dwords = PKT(dw[0], COPY_LINEAR_HEADER, broadcast) ? 9 : 7;
	if (copies_nothing(queue, dw[1])) {
		report_violation(
			&gpu->report,
			"SDMA %u: the driver copies 0 bytes to %#llx, of which hardware makes 1 GiB",
			queue->engine, (unsigned long long)join(dw + 5));
		return 0;
	}
	ret = memory_copy(gpu, space, join(dw + 5), join(dw + 3), size_bytes);
	if (ret == 0 && queue->packet_dwords == 9)
		ret = memory_copy(gpu, space, join(dw + 7), join(dw + 3), size_bytes);
	if (ret == 0)
		sdma_count_copy(gpu, queue->engine, size_bytes);
	return ret;
}

/* A part of memory as a box of rows and slices: its start, and the distances from row to row and
 * from slice to slice, in bytes. */
struct box {
	uint64_t address, pitch, slice;
};

/* Five dwords, in elements. Pitches are stored less one. */
static struct box box_of(const uint32_t *dw, uint32_t shift)
{
	struct box box = {
		.pitch = ((uint64_t)PKT(dw[3], COPY_LINEAR_SUBWIN_DW_4, src_pitch) + 1) << shift,
		.slice = ((uint64_t)PKT(dw[4], COPY_LINEAR_SUBWIN_DW_5, src_slice_pitch) + 1)
			 << shift,
	};

	box.address = join(dw) + ((uint64_t)PKT(dw[2], COPY_LINEAR_SUBWIN_DW_3, src_x) << shift) +
		      PKT(dw[2], COPY_LINEAR_SUBWIN_DW_3, src_y) * box.pitch +
		      PKT(dw[3], COPY_LINEAR_SUBWIN_DW_4, src_z) * box.slice;
	return box;
}

static int run_window_copy(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint32_t shift = PKT(dw[0], COPY_LINEAR_SUBWIN_HEADER, elementsize);
	uint64_t row = (PKT(dw[11], COPY_LINEAR_SUBWIN_DW_11, rect_x) + 1ull) << shift;
	uint32_t rows = PKT(dw[11], COPY_LINEAR_SUBWIN_DW_11, rect_y) + 1;
	uint32_t slices = PKT(dw[12], COPY_LINEAR_SUBWIN_DW_12, rect_z) + 1;
	struct box from = box_of(dw + 1, shift), to = box_of(dw + 6, shift);
	uint32_t y, z;
	int ret = 0;

	queue->packet_dwords = 13;
	for (z = 0; ret == 0 && z < slices; z++)
		for (y = 0; ret == 0 && y < rows; y++)
			ret = memory_copy(gpu, queue_space(queue),
					  to.address + z * to.slice + y * to.pitch,
					  from.address + z * from.slice + y * from.pitch, row);
	if (ret == 0)
		sdma_count_copy(gpu, queue->engine, row * rows * slices);
	return ret;
}

static int run_copy(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	switch (PKT(dw[0], HEADER, sub_op)) {
	case SDMA_SUBOP_COPY_LINEAR:
		return run_linear_copy(gpu, queue, dw);
	case SDMA_SUBOP_COPY_LINEAR_SUB_WIND:
		return run_window_copy(gpu, queue, dw);
	default:
		return -EINVAL;
	}
}

static int run_write(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint32_t count = PKT(dw[3], WRITE_UNTILED_DW_3, count) + 1, done = 0, n;
	uint32_t data[CHUNK_DWORDS];
	int ret = 0;

	queue->packet_dwords = 4 + count;
	for (; ret == 0 && done < count; done += n) {
		n = count - done < CHUNK_DWORDS ? count - done : CHUNK_DWORDS;
		ret = queue_fetch(gpu, queue, 4 + done, n, data);
		if (ret == 0)
			ret = memory_write(gpu, queue_space(queue), join(dw + 1) + 4ull * done,
					   data, 4ull * n);
	}
	return ret;
}

/* Only the driver names a VMID. A process has its own. */
static int run_indirect(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	struct queue_ib *ib = &queue->next_ib;

	if (queue_is_in_ib(queue)) {
		report_violation(&gpu->report, "SDMA %u: a command buffer in a command buffer",
				 queue->engine);
		return -EINVAL;
	}
	ib->space = queue->space;
	if (!queue->is_user)
		ib->space.vmid = PKT(dw[0], INDIRECT_HEADER, vmid);
	ib->address = join(dw + 1) & ~31ull;
	ib->end = ib->address + 4ull * PKT(dw[3], INDIRECT_IB_SIZE, ib_size);
	return 0;
}

static int run_fence(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return memory_write32(gpu, queue_space(queue), join(dw + 1), dw[3]);
}

static int run_trap(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	struct ih_entry entry = {
		.client = gpu->asic->sdma[queue->engine].client,
		.source = SDMA0_4_0__SRCID__SDMA_TRAP,
		.space = *queue_space(queue),
		.data = { PKT(dw[1], TRAP_INT_CONTEXT, int_context) },
	};

	ih_post(gpu, &entry);
	return 0;
}

/* The flush of the host's writes has nothing to do here. */
static int run_poll(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint32_t function = PKT(dw[0], POLL_REGMEM_HEADER, func), value;
	int ret;

	if (PKT(dw[0], POLL_REGMEM_HEADER, hdp_flush))
		return 0;
	if (PKT(dw[0], POLL_REGMEM_HEADER, mem_poll)) {
		ret = memory_read(gpu, queue_space(queue), join(dw + 1), &value, sizeof(value));
		if (ret < 0)
			return ret;
	} else {
		/* ROCr flushes the host's writes with a poll of a register that holds at once. */
		if (queue->is_user && function)
			return -EINVAL;
		value = regs_read(gpu, dw[1] >> 2);
	}
	return queue_compare(function, value & dw[4], dw[3]) ? 0 : -EAGAIN;
}

static int run_conditional(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint32_t value;
	int ret = memory_read(gpu, queue_space(queue), join(dw + 1), &value, sizeof(value));

	if (ret == 0 && value == 0)
		queue->packet_dwords += PKT(dw[4], COND_EXE_EXEC_COUNT, exec_count);
	return ret;
}

static int run_atomic(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint32_t operation = PKT(dw[0], ATOMIC_HEADER, atomic_op);
	uint64_t size_bytes = operation == ATOMIC_ADD64 ? 8 : 4, n = size_bytes;
	uint64_t address = join(dw + 1);
	void *at;

	if ((operation != ATOMIC_ADD32 && operation != ATOMIC_ADD64) || address % size_bytes)
		return -EINVAL;
	at = memory_at(gpu, queue_space(queue), address, ACCESS_WRITE, &n);
	if (!at)
		return -EFAULT;
	if (size_bytes == 8)
		(void)__atomic_add_fetch((uint64_t *)at, join(dw + 3), __ATOMIC_SEQ_CST);
	else
		(void)__atomic_add_fetch((uint32_t *)at, dw[3], __ATOMIC_SEQ_CST);
	return 0;
}

static int run_fill(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint64_t last = dw[4] & COUNT_MASK;

	if (PKT(dw[0], CONSTANT_FILL_HEADER, fillsize) == FILL_DWORDS)
		last |= 3;
	return memory_fill(gpu, queue_space(queue), join(dw + 1), dw[3], last + 1);
}

/* Entries of page tables: a value that grows, with flags. */
static int run_entries(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint32_t count = PKT(dw[9], WRITE_INCR_COUNT, count) + 1, i;
	uint64_t to = join(dw + 1), flags = join(dw + 3), value = join(dw + 5), step = join(dw + 7);
	int ret = 0;

	if (PKT(dw[0], HEADER, sub_op) != SDMA_SUBOP_PTEPDE_GEN)
		return -EINVAL;
	for (i = 0; ret == 0 && i < count; i++)
		ret = memory_write64(gpu, queue_space(queue), to + 8ull * i,
				     (value + i * step) | flags);
	return ret;
}

static int run_timestamp(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	if (PKT(dw[0], HEADER, sub_op) != SDMA_SUBOP_TIMESTAMP_GET_GLOBAL)
		return -EINVAL;
	return memory_write64(gpu, queue_space(queue), join(dw + 1) & ~7ull, gpu_clock());
}

static int run_register_write(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	if (queue->is_user || queue_space(queue)->vmid)
		return -EINVAL;
	regs_write(gpu, PKT(dw[1], SRBM_WRITE_ADDR, addr), dw[2]);
	return 0;
}

/* @dwords: the least number of a packet. The functions of longer ones set queue->packet_dwords. */
static const struct {
	uint32_t dwords;
	int (*run)(struct gpu *gpu, struct queue *queue, const uint32_t *dw);
} packets[] = {
	[SDMA_OP_NOP] = { 1, run_nop },
	[SDMA_OP_COPY] = { 7, run_copy },
	[SDMA_OP_WRITE] = { 4, run_write },
	[SDMA_OP_INDIRECT] = { 6, run_indirect },
	[SDMA_OP_FENCE] = { 4, run_fence },
	[SDMA_OP_TRAP] = { 2, run_trap },
	[SDMA_OP_POLL_REGMEM] = { 6, run_poll },
	[SDMA_OP_COND_EXE] = { 5, run_conditional },
	[SDMA_OP_ATOMIC] = { 8, run_atomic },
	[SDMA_OP_CONST_FILL] = { 5, run_fill },
	[SDMA_OP_PTEPDE] = { 10, run_entries },
	[SDMA_OP_TIMESTAMP] = { 3, run_timestamp },
	[SDMA_OP_SRBM_WRITE] = { 3, run_register_write },
};

/* The longest head that a packet can have: copies differ in length. */
static uint32_t head_dwords(uint32_t header, uint32_t least)
{
	if (PKT(header, HEADER, op) != SDMA_OP_COPY)
		return least;
	if (PKT(header, HEADER, sub_op) == SDMA_SUBOP_COPY_LINEAR_SUB_WIND)
		return 13;
	return PKT(header, COPY_LINEAR_HEADER, broadcast) ? 9 : least;
}

static int refuse(struct gpu *gpu, const struct queue *queue, const uint32_t *dw)
{
	report_violation(&gpu->report, "SDMA %u: bad packet of %s: %08x %08x %08x %08x %08x",
			 queue->engine, queue->is_user ? "a process" : "the driver", dw[0], dw[1],
			 dw[2], dw[3], dw[4]);
	return -EINVAL;
}

int sdma_step(struct gpu *gpu, struct queue *queue)
{
	uint32_t dw[MAX_DWORDS] = { 0 }, op, dwords;
	int ret = queue_fetch(gpu, queue, 0, 1, dw);

	if (ret < 0)
		return ret;
	op = PKT(dw[0], HEADER, op);
	if (op >= sizeof(packets) / sizeof(packets[0]) || !packets[op].run)
		return refuse(gpu, queue, dw);
	dwords = head_dwords(dw[0], packets[op].dwords);
	queue->packet_dwords = packets[op].dwords;
	ret = queue_fetch(gpu, queue, 1, dwords - 1, dw + 1);
	if (ret < 0)
		return ret;
	report_log(&gpu->report, REPORT_PACKETS, "SDMA %u%s: packet %u.%u at %#llx", queue->engine,
		   queue_is_in_ib(queue) ? " (buffer)" : "", op, PKT(dw[0], HEADER, sub_op),
		   (unsigned long long)(queue_is_in_ib(queue) ? queue->ib.address : queue->rptr));
	ret = packets[op].run(gpu, queue, dw);
	if (ret == -EINVAL)
		return refuse(gpu, queue, dw);
	if (ret < 0)
		return ret;
	gpu->sdma[queue->engine].packets++;
	return queue_advance(gpu, queue);
}
