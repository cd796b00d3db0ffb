// SPDX-License-Identifier: GPL-2.0-only
#include "pm4.h"

#include <errno.h>
#include <kfd_pm4_opcodes.h>
#include <soc15d.h>

#include "cp.h"
#include "gpu.h"
#include "regs.h"

#define MAX_DWORDS       32u
#define NOP_ONE_DWORD    0x3fffu /* the count of a NOP without a body */
#define REGISTER_MASK    0x3ffffu
#define IB_SIZE_MASK     0xfffffu
#define IB_VMID(dw)      ((dw) >> 24 & 15)
#define COPY_FROM(dw)    ((dw)&15)
#define COPY_TO(dw)      ((dw) >> 8 & 15)
#define COPY_64_BITS     (1u << 16)
#define WRITE_TO(dw)     ((dw) >> 8 & 15)
#define RELEASE_DATA(dw) ((dw) >> 29)
#define RELEASE_INT(dw)  ((dw) >> 24 & 7)

/* Selectors of WRITE_DATA and COPY_DATA. */
enum { SELECT_REGISTER = 0, SELECT_MEMORY = 1, SELECT_L2 = 2, SELECT_VALUE = 5, SELECT_CLOCK = 9 };

static uint64_t join(const uint32_t *dwords)
{
	return dwords[0] | (uint64_t)dwords[1] << 32;
}

/* Of queues of processes and of command buffers that come from them. */
static bool is_privileged(const struct queue *queue)
{
	return !queue->is_user && !queue_space(queue)->vmid;
}

/* Packets name registers of the XCC that runs them as if it were the first. */
static uint32_t own(const struct queue *queue, uint32_t reg)
{
	return gpu_register_of(queue->space.instance, reg);
}

/* Caches, which the model does not have. */
static int run_nothing(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	(void)gpu;
	(void)queue;
	(void)dw;
	return 0;
}

static int set_registers(struct gpu *gpu, struct queue *queue, const uint32_t *dw, uint32_t base)
{
	uint32_t i;

	if (queue->packet_dwords > MAX_DWORDS)
		return -EINVAL;
	for (i = 2; i < queue->packet_dwords; i++)
		regs_write(gpu, own(queue, base + (dw[1] & 0xffff) + i - 2), dw[i]);
	return 0;
}

static int run_set_shader(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return set_registers(gpu, queue, dw, PACKET3_SET_SH_REG_START);
}

static int run_set_user_config(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return set_registers(gpu, queue, dw, PACKET3_SET_UCONFIG_REG_START);
}

static int run_set_config(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	if (!is_privileged(queue))
		return -EINVAL;
	return set_registers(gpu, queue, dw, PACKET3_SET_CONFIG_REG_START);
}

static int run_write_data(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint32_t step = dw[1] & WR_ONE_ADDR ? 0 : 1, i, value;
	int ret = 0;

	if (WRITE_TO(dw[1]) == SELECT_REGISTER && !is_privileged(queue))
		return -EINVAL;
	for (i = 4; ret == 0 && i < queue->packet_dwords; i++) {
		ret = queue_fetch(gpu, queue, i, 1, &value);
		if (ret < 0)
			return ret;
		if (WRITE_TO(dw[1]) == SELECT_REGISTER)
			regs_write(gpu, own(queue, (dw[2] & REGISTER_MASK) + step * (i - 4)),
				   value);
		else
			ret = memory_write32(gpu, queue_space(queue),
					     join(dw + 2) + 4ull * step * (i - 4), value);
	}
	return ret;
}

static int run_wait(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	bool is_memory = dw[1] >> 4 & 3, writes_first = dw[1] >> 6 & 3;
	uint32_t value;
	int ret;

	if ((!is_memory || writes_first) && !is_privileged(queue))
		return -EINVAL;
	if (writes_first) { /* an invalidation, whose acknowledge is there at once */
		regs_write(gpu, own(queue, dw[2]), dw[4]);
		value = regs_read(gpu, own(queue, dw[3]));
	} else if (is_memory) {
		ret = memory_read(gpu, queue_space(queue), join(dw + 2) & ~3ull, &value,
				  sizeof(value));
		if (ret < 0)
			return ret;
	} else {
		value = regs_read(gpu, own(queue, dw[2]));
	}
	if (writes_first)
		return value & dw[5] ? 0 : -EAGAIN;
	return queue_compare(dw[1] & 7, value & dw[5], dw[4]) ? 0 : -EAGAIN;
}

static int run_buffer(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	struct queue_ib *ib = &queue->next_ib;

	(void)gpu;
	if (queue_is_in_ib(queue))
		return -EINVAL;
	ib->space = queue->space;
	if (!queue->is_user)
		ib->space.vmid = IB_VMID(dw[3]);
	ib->address = join(dw + 1) & ~3ull;
	ib->end = ib->address + 4ull * (dw[3] & IB_SIZE_MASK);
	return 0;
}

static int read_source(struct gpu *gpu, struct queue *queue, const uint32_t *dw,
		       uint64_t *ret_value)
{
	uint64_t size_bytes = dw[1] & COPY_64_BITS ? 8 : 4;

	*ret_value = 0;
	switch (COPY_FROM(dw[1])) {
	case SELECT_REGISTER:
		if (!is_privileged(queue))
			return -EINVAL;
		*ret_value = regs_read(gpu, own(queue, dw[2]));
		return 0;
	case SELECT_MEMORY:
	case SELECT_L2:
		return memory_read(gpu, queue_space(queue), join(dw + 2), ret_value, size_bytes);
	case SELECT_VALUE:
		*ret_value = join(dw + 2);
		return 0;
	case SELECT_CLOCK:
		*ret_value = gpu_clock();
		return 0;
	default:
		return -EINVAL;
	}
}

static int run_copy_data(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	uint64_t value;
	int ret = read_source(gpu, queue, dw, &value);

	if (ret < 0)
		return ret;
	if (COPY_TO(dw[1]) != SELECT_REGISTER)
		return memory_write(gpu, queue_space(queue), join(dw + 4), &value,
				    dw[1] & COPY_64_BITS ? 8 : 4);
	if (!is_privileged(queue))
		return -EINVAL;
	regs_write(gpu, own(queue, dw[4]), (uint32_t)value);
	return 0;
}

static int run_release(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	const struct space *space = queue_space(queue);
	uint64_t to = join(dw + 3);
	int ret = 0;

	switch (RELEASE_DATA(dw[2])) {
	case 1:
		ret = memory_write32(gpu, space, to, dw[5]);
		break;
	case 2:
		ret = memory_write64(gpu, space, to, join(dw + 5));
		break;
	case 3:
		ret = memory_write64(gpu, space, to, gpu_clock());
		break;
	}
	if (ret == 0 && RELEASE_INT(dw[2]))
		cp_interrupt(gpu, queue, dw[7]);
	return ret;
}

static int run_set_resources(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return is_privileged(queue) ? hws_set_resources(gpu, queue, dw) : -EINVAL;
}

static int run_map_queues(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return is_privileged(queue) ? hws_map_queue(gpu, queue, dw) : -EINVAL;
}

static int run_unmap_queues(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return is_privileged(queue) ? hws_unmap_queues(gpu, queue, dw) : -EINVAL;
}

static int run_query_status(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return is_privileged(queue) ? hws_query_status(gpu, queue, dw) : -EINVAL;
}

static int run_run_list(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	return is_privileged(queue) ? hws_run_list(gpu, queue, dw) : -EINVAL;
}

/* @dwords: the least number. */
struct packet {
	uint32_t dwords;
	int (*run)(struct gpu *gpu, struct queue *queue, const uint32_t *dw);
};

static const struct packet packets[256] = {
	[PACKET3_NOP] = { 1, run_nothing },
	[PACKET3_EVENT_WRITE] = { 2, run_nothing },
	[PACKET3_ACQUIRE_MEM] = { 7, run_nothing },
	[PACKET3_INVALIDATE_TLBS] = { 2, run_nothing },
	[PACKET3_SET_CONFIG_REG] = { 3, run_set_config },
	[PACKET3_SET_SH_REG] = { 3, run_set_shader },
	[PACKET3_SET_UCONFIG_REG] = { 3, run_set_user_config },
	[PACKET3_WRITE_DATA] = { 5, run_write_data },
	[PACKET3_WAIT_REG_MEM] = { 7, run_wait },
	[PACKET3_INDIRECT_BUFFER] = { 4, run_buffer },
	[PACKET3_COPY_DATA] = { 6, run_copy_data },
	[PACKET3_RELEASE_MEM] = { 8, run_release },
	[PACKET3_SET_RESOURCES] = { 8, run_set_resources },
	[PACKET3_MAP_QUEUES] = { 7, run_map_queues },
	[PACKET3_UNMAP_QUEUES] = { 6, run_unmap_queues },
	[PACKET3_QUERY_STATUS] = { 7, run_query_status },
	[IT_RUN_LIST] = { 4, run_run_list },
};

static int refuse(struct gpu *gpu, const struct queue *queue, const uint32_t *dw)
{
	report_violation(&gpu->report, "CP: bad packet of %s: %08x %08x %08x %08x",
			 queue->is_user             ? "a process"
			 : queue_space(queue)->vmid ? "a command buffer"
						    : "the driver",
			 dw[0], dw[1], dw[2], dw[3]);
	return -EINVAL;
}

static uint32_t length_of(uint32_t header)
{
	uint32_t count = CP_PACKET_GET_COUNT(header);

	if (CP_PACKET_GET_TYPE(header) == PACKET_TYPE2)
		return 1;
	if (CP_PACKET3_GET_OPCODE(header) == PACKET3_NOP && count == NOP_ONE_DWORD)
		return 1;
	return count + 2;
}

static int run(struct gpu *gpu, struct queue *queue, const uint32_t *dw)
{
	const struct packet *packet = &packets[CP_PACKET3_GET_OPCODE(dw[0])];
	int ret;

	if (CP_PACKET_GET_TYPE(dw[0]) == PACKET_TYPE2)
		return 0;
	if (CP_PACKET_GET_TYPE(dw[0]) != PACKET_TYPE3 || !packet->run ||
	    queue->packet_dwords < packet->dwords)
		return refuse(gpu, queue, dw);
	ret = packet->run(gpu, queue, dw);
	return ret == -EINVAL ? refuse(gpu, queue, dw) : ret;
}

int pm4_step(struct gpu *gpu, struct queue *queue)
{
	uint32_t dw[MAX_DWORDS] = { 0 }, head;
	int ret = queue_fetch(gpu, queue, 0, 1, dw);

	if (ret < 0)
		return ret;
	queue->packet_dwords = length_of(dw[0]);
	head = queue->packet_dwords < MAX_DWORDS ? queue->packet_dwords : MAX_DWORDS;
	if (CP_PACKET3_GET_OPCODE(dw[0]) == PACKET3_NOP)
		head = 1;
	ret = queue_fetch(gpu, queue, 1, head - 1, dw + 1);
	if (ret < 0)
		return ret;
	report_log(&gpu->report, REPORT_PACKETS, "CP %u.%u.%u.%u%s: packet %#x, %u dwords",
		   queue->space.instance, queue->me, queue->pipe, queue->index,
		   queue_is_in_ib(queue) ? " (buffer)" : "", CP_PACKET3_GET_OPCODE(dw[0]),
		   queue->packet_dwords);
	ret = run(gpu, queue, dw);
	if (ret < 0)
		return ret;
	gpu->counters.pm4_packets++;
	return queue_advance(gpu, queue);
}

int pm4_wait_ms(const struct gpu *gpu, const struct queue *queue)
{
	uint32_t control = gpu->regs[own(queue, REG(GC, mmCP_MEC_CNTL))];

	return FIELD(control, CP_MEC_CNTL, MEC_ME1_HALT) ? -1 : 0;
}
