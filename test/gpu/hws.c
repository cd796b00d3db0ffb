// SPDX-License-Identifier: GPL-2.0-only
#include "hws.h"

#include <errno.h>
#include <kfd_pm4_headers_ai.h>
#include <kfd_pm4_headers_aldebaran.h>
#include <kfd_pm4_opcodes.h>
#include <soc15d.h>
#include <string.h>

#include "gpu.h"
#include "ih.h"
#include "mqd.h"
#include "xcp.h"

#define QUANTUM_NS 10000000ull
#define NS_PER_MS  1000000ull
#define LIST_SPACE ((struct space){ .hub = HUB_GFX })
#define MAP_DWORDS (sizeof(struct pm4_mes_map_queues) / sizeof(uint32_t))
#define MAX_DWORDS (sizeof(struct pm4_mes_map_process_aldebaran) / sizeof(uint32_t))
/* A place in the hardware where the driver has no queue of its own. */
enum { USER_ME = 1, USER_PIPE = 3, USER_INDEX = 7 };

/* In MAP_QUEUES of the driver's own queues (PACKET3_MAP_QUEUES_*): bits 20:13. */
#define PLACE_INDEX(dw) ((dw) >> 13 & 7)
#define PLACE_PIPE(dw)  ((dw) >> 16 & 3)
#define PLACE_ME(dw)    (((dw) >> 18 & 1) + 1)

static uint64_t join(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static int refuse(struct gpu *gpu, const char *what, uint32_t value)
{
	report_violation(&gpu->report, "scheduler: %s: %#x", what, value);
	return -EINVAL;
}

static const char *kind_name(const struct queue *queue)
{
	static const char *const names[] = {
		[QUEUE_SDMA] = "SDMA", [QUEUE_PM4] = "PM4", [QUEUE_AQL] = "AQL"
	};

	return names[queue->kind];
}

/* The SDMA engine that a MAP_QUEUES packet names, or -1: a compute queue. */
static int engine_of(const struct pm4_mes_map_queues *packet)
{
	unsigned int engine = packet->bitfields2.engine_sel;

	if (packet->bitfields2.extended_engine_sel ==
	    extended_engine_sel__mes_map_queues__sdma0_to_7_sel)
		return (int)engine;
	if (engine == engine_sel__mes_map_queues__sdma0_vi ||
	    engine == engine_sel__mes_map_queues__sdma1_vi)
		return (int)(engine - engine_sel__mes_map_queues__sdma0_vi);
	return -1;
}

static int load(struct gpu *gpu, const struct pm4_mes_map_queues *packet, const struct xcp *xcp,
		struct queue *queue)
{
	uint64_t mqd = join(packet->mqd_addr_lo, packet->mqd_addr_hi);
	int engine = engine_of(packet);

	if (engine < 0)
		return mqd_load_compute(gpu, mqd, xcp->first, queue);
	engine = xcp_sdma_engine(gpu, xcp, engine);
	if (engine < 0)
		return refuse(gpu, "there is no such SDMA engine", engine_of(packet));
	return mqd_load_sdma(gpu, mqd, engine, queue);
}

/* A process may have rung the doorbell while the queue was not mapped. */
static void read_wptr(struct gpu *gpu, struct queue *queue, uint64_t address)
{
	uint64_t value = 0, size_bytes = queue->kind == QUEUE_PM4 ? 4 : 8;

	if (!address || memory_read(gpu, &queue->space, address, &value, size_bytes) < 0)
		return;
	queue->wptr = value * queue_unit_bytes(queue);
}

static void log_mapped(struct gpu *gpu, const struct queue *queue)
{
	report_log(&gpu->report, REPORT_QUEUES,
		   "scheduler: map %s queue: VMID %u, doorbell %#x, MQD %#llx, ring %#llx + %#llx, "
		   "read %#llx, written %#llx",
		   kind_name(queue), queue->space.vmid, queue->doorbell,
		   (unsigned long long)queue->mqd, (unsigned long long)queue->base,
		   (unsigned long long)queue->size_bytes, (unsigned long long)queue->rptr,
		   (unsigned long long)queue->wptr);
}

/* Lost waves are a violation, but no reason to lose the other queues of the list. */
static void load_waves(struct gpu *gpu, struct queue *queue)
{
	if (mqd_load_waves(gpu, queue) == -EFAULT)
		report_violation(&gpu->report,
				 "scheduler: cannot read the queue with doorbell %#x at %#llx",
				 queue->doorbell, (unsigned long long)gpu->fault.address);
}

static int map_entry(struct gpu *gpu, const struct pm4_mes_map_queues *packet,
		     const struct queue *loaded, unsigned int vmid)
{
	struct queue *queue = queue_new(gpu);

	if (!queue)
		return -ENOSPC;
	*queue = *loaded;
	queue->me = USER_ME;
	queue->pipe = USER_PIPE;
	queue->index = USER_INDEX;
	queue->active = true;
	queue->is_user = true;
	queue->space.vmid = vmid;
	queue->has_doorbell = true;
	queue->doorbell = packet->bitfields3.doorbell_offset;
	read_wptr(gpu, queue, join(packet->wptr_addr_lo, packet->wptr_addr_hi));
	log_mapped(gpu, queue);
	if (queue->kind == QUEUE_AQL)
		load_waves(gpu, queue);
	return 0;
}

/* Of the MQDs of a queue the driver fills in all or none. */
static bool is_same_queue(const struct queue *first, const struct queue *other)
{
	return other->kind == first->kind && other->base == first->base &&
	       other->size_bytes == first->size_bytes && other->rptr == first->rptr;
}

/* Each other XCC of the partition has an MQD of its own. The first one reports the read pointer. An
 * XCC without its MQD is lost to the queue, which hangs when this XCC has its turn. */
static int map_on_others(struct gpu *gpu, const struct pm4_mes_map_queues *packet,
			 const struct xcp *xcp, const struct queue *first)
{
	struct queue other = { 0 };
	unsigned int i;
	uint32_t stride;
	int ret = mqd_read_stride(gpu, first->mqd, &stride);

	for (i = 1; ret == 0 && i < xcp->count; i++) {
		ret = mqd_load_compute(gpu, first->mqd + (uint64_t)i * stride, xcp->first + i,
				       &other);
		if (ret == 0 && !is_same_queue(first, &other)) {
			(void)refuse(gpu, "the MQD of this XCC describes another queue", i);
			continue;
		}
		other.xccs = xcp->count;
		other.rptr_address = 0;
		if (ret == 0)
			ret = map_entry(gpu, packet, &other, first->space.vmid);
	}
	return ret;
}

static int map_user_queue(struct gpu *gpu, const struct pm4_mes_map_queues *packet,
			  const struct xcp *xcp, unsigned int vmid)
{
	struct queue queue = { 0 };
	int ret = load(gpu, packet, xcp, &queue);

	if (ret < 0)
		return ret;
	queue.xccs = queue.kind == QUEUE_AQL ? xcp->count : 1;
	if (queue.kind == QUEUE_PM4)
		queue.space.instance = xcp->first + queue.target_xcc % xcp->count;
	queue.space.vmid = vmid;
	ret = map_entry(gpu, packet, &queue, vmid);
	return ret == 0 && queue.xccs > 1 ? map_on_others(gpu, packet, xcp, &queue) : ret;
}

int hws_map_queue(struct gpu *gpu, const struct queue *by, const uint32_t *dw)
{
	const struct xcp alone = { by->space.instance, 1 };
	struct pm4_mes_map_queues packet;
	struct queue loaded = { 0 }, *queue;
	int ret;

	memcpy(&packet, dw, sizeof(packet));
	ret = load(gpu, &packet, &alone, &loaded);
	if (ret < 0)
		return ret;
	queue = queue_new(gpu);
	if (!queue)
		return -ENOSPC;
	*queue = loaded;
	queue->active = true;
	queue->me = PLACE_ME(dw[1]);
	queue->pipe = PLACE_PIPE(dw[1]);
	queue->index = PLACE_INDEX(dw[1]);
	queue->has_doorbell = true;
	queue->doorbell = packet.bitfields3.doorbell_offset;
	log_mapped(gpu, queue);
	return 0;
}

/* The queue of the scheduler is mapped by an MQD, and that of the driver (KIQ) by registers. */
static bool is_scheduler(const struct queue *queue)
{
	return queue->mqd != 0;
}

/* All XCCs of a partition read the scheduler's queue, and the first one acts for them here. */
static bool is_led(const struct gpu *gpu, const struct queue *by)
{
	return is_scheduler(by) && xcp_of(gpu, by->space.instance).first != by->space.instance;
}

static struct hws *hws_of(struct gpu *gpu, const struct queue *by)
{
	return &gpu->hws[by->space.instance];
}

int hws_set_resources(struct gpu *gpu, const struct queue *by, const uint32_t *dw)
{
	struct pm4_mes_set_resources packet;

	memcpy(&packet, dw, sizeof(packet));
	if (packet.bitfields2.queue_type == queue_type__mes_set_resources__hsa_interface_queue_hiq)
		hws_of(gpu, by)->vmid_mask = packet.bitfields2.vmid_mask;
	return 0;
}

static void unmap(struct gpu *gpu, struct queue *queue, bool with_waves)
{
	int ret = 0;

	report_log(&gpu->report, REPORT_QUEUES,
		   "scheduler: unmap %s queue: doorbell %#x, read %#llx, written %#llx",
		   kind_name(queue), queue->doorbell, (unsigned long long)queue->rptr,
		   (unsigned long long)queue->wptr);
	if (queue->is_user)
		ret = mqd_save(gpu, queue, with_waves);
	if (ret == -EFAULT)
		report_violation(&gpu->report,
				 "scheduler: cannot save the queue with doorbell %#x at %#llx",
				 queue->doorbell, (unsigned long long)gpu->fault.address);
	memset(&gpu->fault, 0, sizeof(gpu->fault));
	queue_remove(queue);
}

static bool is_of_partition(const struct gpu *gpu, const struct xcp *xcp, const struct queue *queue)
{
	return queue->is_user && xcp_xcc_of(gpu, queue) - xcp->first < xcp->count;
}

static void unmap_all(struct gpu *gpu, const struct xcp *xcp, bool with_waves)
{
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++)
		if (gpu->queues[i].active && is_of_partition(gpu, xcp, &gpu->queues[i]))
			unmap(gpu, &gpu->queues[i], with_waves);
	gpu->hws[xcp->first].vmid_used = 0;
}

/* The KIQ reaches the driver's queues of its XCC, the scheduler those of processes. */
static bool reaches(const struct gpu *gpu, const struct queue *by, const struct queue *queue)
{
	const struct xcp xcp = xcp_of(gpu, by->space.instance);

	if (is_scheduler(by))
		return is_of_partition(gpu, &xcp, queue);
	return !queue->is_user && queue->kind != QUEUE_SDMA &&
	       queue->space.instance == by->space.instance;
}

static bool is_selected(const struct gpu *gpu, const struct queue *queue,
			const struct pm4_mes_unmap_queues *packet)
{
	switch (packet->bitfields2.queue_sel) {
	case queue_sel__mes_unmap_queues__perform_request_on_specified_queues:
		return queue->has_doorbell &&
		       queue->doorbell == packet->bitfields3b.doorbell_offset0;
	case queue_sel__mes_unmap_queues__perform_request_on_pasid_queues:
		return ih_pasid_of(gpu, &queue->space) == packet->bitfields3a.pasid;
	default:
		return true;
	}
}

int hws_unmap_queues(struct gpu *gpu, const struct queue *by, const uint32_t *dw)
{
	struct pm4_mes_unmap_queues packet;
	unsigned int i;

	if (is_led(gpu, by))
		return 0;
	memcpy(&packet, dw, sizeof(packet));
	for (i = 0; i < QUEUE_MAX; i++) {
		struct queue *queue = &gpu->queues[i];

		if (!queue->active || queue == by || !reaches(gpu, by, queue))
			continue;
		if (is_selected(gpu, queue, &packet))
			unmap(gpu, queue,
			      packet.bitfields2.action == action__mes_unmap_queues__preempt_queues);
	}
	if (is_scheduler(by) &&
	    packet.bitfields2.queue_sel >= queue_sel__mes_unmap_queues__unmap_all_queues) {
		hws_of(gpu, by)->vmid_used = 0;
		hws_of(gpu, by)->takes_turns = false;
	}
	return 0;
}

/* The driver waits for the fence to know that all queues are unmapped. */
int hws_query_status(struct gpu *gpu, const struct queue *by, const uint32_t *dw)
{
	struct pm4_mes_query_status packet;

	if (is_led(gpu, by))
		return 0;
	memcpy(&packet, dw, sizeof(packet));
	return memory_write64(gpu, queue_space(by), join(packet.addr_lo, packet.addr_hi),
			      join(packet.data_lo, packet.data_hi));
}

/* -EBUSY: all VMIDs are taken. */
static int map_process(struct gpu *gpu, const struct xcp *xcp, const uint32_t *dw,
		       unsigned int *ret_vmid)
{
	struct pm4_mes_map_process_aldebaran packet;
	struct hws *hws = &gpu->hws[xcp->first];
	uint32_t unused = hws->vmid_mask & ~hws->vmid_used;
	uint64_t directory;
	unsigned int vmid, i;

	if (!unused)
		return -EBUSY;
	memcpy(&packet, dw, sizeof(packet));
	vmid = __builtin_ctz(unused);
	hws->vmid_used |= 1u << vmid;
	directory = join(packet.vm_context_page_table_base_addr_lo32,
			 packet.vm_context_page_table_base_addr_hi32);
	for (i = xcp->first; i < xcp->first + xcp->count; i++) {
		memory_set_directory(gpu, i, vmid, directory);
		ih_set_pasid(gpu, i, vmid, packet.bitfields2.pasid);
	}
	report_log(&gpu->report, REPORT_QUEUES,
		   "scheduler: PASID %#x gets VMID %u, page directory %#llx",
		   packet.bitfields2.pasid, vmid, (unsigned long long)directory);
	*ret_vmid = vmid;
	return 0;
}

struct list_reader {
	struct xcp xcp;
	uint64_t address, end;
	uint32_t dw[MAX_DWORDS];
	uint32_t dwords, op;
	unsigned int vmid; /* of the last process, or 0 */
};

static int read_packet(struct gpu *gpu, struct list_reader *reader)
{
	uint64_t left = (reader->end - reader->address) / sizeof(uint32_t);
	int ret = memory_read(gpu, &LIST_SPACE, reader->address, reader->dw, sizeof(uint32_t));

	if (ret < 0)
		return ret;
	reader->op = CP_PACKET3_GET_OPCODE(reader->dw[0]);
	reader->dwords = CP_PACKET_GET_COUNT(reader->dw[0]) + 2;
	if (CP_PACKET_GET_TYPE(reader->dw[0]) != PACKET_TYPE3 || reader->dwords > left ||
	    (reader->dwords > MAX_DWORDS && reader->op != IT_NOP))
		return refuse(gpu, "bad packet in a run list", reader->dw[0]);
	if (reader->op == IT_NOP)
		return 0;
	return memory_read(gpu, &LIST_SPACE, reader->address, reader->dw,
			   sizeof(uint32_t) * reader->dwords);
}

/* 0, -EBUSY all VMIDs are taken, or another error. */
static int run_list_packet(struct gpu *gpu, struct list_reader *reader)
{
	struct pm4_mes_map_queues queue;

	switch (reader->op) {
	case IT_MAP_PROCESS:
		return map_process(gpu, &reader->xcp, reader->dw, &reader->vmid);
	case IT_MAP_QUEUES:
		if (!reader->vmid || reader->dwords < MAP_DWORDS)
			return refuse(gpu, "a queue without a process", reader->dw[0]);
		memcpy(&queue, reader->dw, sizeof(queue));
		return map_user_queue(gpu, &queue, &reader->xcp, reader->vmid);
	case IT_NOP:
		return 0;
	default:
		return refuse(gpu, "unknown packet in a run list", reader->dw[0]);
	}
}

/* The list ends with a RUN_LIST that begins it again if there are more processes or queues than the
 * driver thinks the hardware has room for. */
static bool is_at_end(const struct list_reader *reader)
{
	return reader->address >= reader->end || reader->op == IT_RUN_LIST;
}

/* Maps processes from hws->next on, once around the list at most. */
static int map_list(struct gpu *gpu, const struct xcp *xcp)
{
	struct hws *hws = &gpu->hws[xcp->first];
	struct list_reader reader = { .xcp = *xcp, .address = hws->next, .end = hws->list_end };
	bool has_wrapped = false;
	int ret = 0;

	while (!has_wrapped || reader.address < hws->next) {
		reader.op = IT_NOP;
		if (reader.address < hws->list_end)
			ret = read_packet(gpu, &reader);
		if (ret == 0 && is_at_end(&reader)) {
			if (has_wrapped || hws->next == hws->list)
				break;
			has_wrapped = true;
			reader.address = hws->list;
			continue;
		}
		if (ret == 0)
			ret = run_list_packet(gpu, &reader);
		if (ret < 0)
			break;
		reader.address += sizeof(uint32_t) * reader.dwords;
	}
	hws->takes_turns = ret == -EBUSY;
	hws->next = reader.address;
	hws->turn_ends_ns = gpu_now_ns() + QUANTUM_NS;
	return ret == -EBUSY ? 0 : ret;
}

int hws_run_list(struct gpu *gpu, const struct queue *by, const uint32_t *dw)
{
	const struct xcp xcp = xcp_of(gpu, by->space.instance);
	struct hws *hws = &gpu->hws[xcp.first];
	struct pm4_mes_runlist packet;

	if (is_led(gpu, by))
		return 0;
	memcpy(&packet, dw, sizeof(packet));
	unmap_all(gpu, &xcp, true);
	hws->list = join(packet.ordinal2 & ~3u, packet.ib_base_hi);
	hws->list_end = hws->list + sizeof(uint32_t) * (uint64_t)packet.bitfields4.ib_size;
	hws->next = hws->list;
	return map_list(gpu, &xcp);
}

static int run_partition(struct gpu *gpu, const struct xcp *xcp)
{
	struct hws *hws = &gpu->hws[xcp->first];
	uint64_t now;

	if (!hws->takes_turns)
		return -1;
	now = gpu_now_ns();
	if (now < hws->turn_ends_ns)
		return (int)((hws->turn_ends_ns - now + NS_PER_MS - 1) / NS_PER_MS);
	unmap_all(gpu, xcp, true);
	if (map_list(gpu, xcp) < 0) {
		hws->takes_turns = false;
		report_violation(&gpu->report, "scheduler: cannot read the run list again");
	}
	return 0;
}

int hws_run(struct gpu *gpu)
{
	int wait_ms = -1;
	struct xcp xcp;
	unsigned int xcc;

	for (xcc = 0; xcc < gpu->asic->xccs; xcc += xcp.count) {
		xcp = xcp_of(gpu, xcc);
		wait_ms = queue_shorter(wait_ms, run_partition(gpu, &xcp));
	}
	return wait_ms;
}
