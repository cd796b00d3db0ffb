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

#define QUANTUM_NS 10000000ull
#define NS_PER_MS  1000000ull
#define LIST_SPACE ((struct space){ .hub = HUB_GFX })
#define MAP_DWORDS (sizeof(struct pm4_mes_map_queues) / sizeof(uint32_t))
#define MAX_DWORDS (sizeof(struct pm4_mes_map_process_aldebaran) / sizeof(uint32_t))
/* A place in the hardware where the driver has no queue of its own. */
#define USER_PLACE                             \
	{                                      \
		.me = 1, .pipe = 3, .index = 7 \
	}
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

static int load(struct gpu *gpu, const struct pm4_mes_map_queues *packet, struct queue *queue)
{
	uint64_t mqd = join(packet->mqd_addr_lo, packet->mqd_addr_hi);
	int engine = engine_of(packet);

	if (engine < 0)
		return mqd_load_compute(gpu, mqd, queue);
	if ((unsigned int)engine >= SDMA_ENGINES)
		return refuse(gpu, "there is no such SDMA engine", engine);
	queue->engine = engine;
	return mqd_load_sdma(gpu, mqd, queue);
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

static int map_user_queue(struct gpu *gpu, const struct pm4_mes_map_queues *packet,
			  unsigned int vmid)
{
	struct queue loaded = USER_PLACE, *queue;
	int ret = load(gpu, packet, &loaded);

	if (ret < 0)
		return ret;
	queue = queue_new(gpu);
	if (!queue)
		return -ENOSPC;
	*queue = loaded;
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

int hws_map_queue(struct gpu *gpu, const uint32_t *dw)
{
	struct pm4_mes_map_queues packet;
	struct queue loaded = { 0 }, *queue;
	int ret;

	memcpy(&packet, dw, sizeof(packet));
	ret = load(gpu, &packet, &loaded);
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

int hws_set_resources(struct gpu *gpu, const uint32_t *dw)
{
	struct pm4_mes_set_resources packet;

	memcpy(&packet, dw, sizeof(packet));
	if (packet.bitfields2.queue_type == queue_type__mes_set_resources__hsa_interface_queue_hiq)
		gpu->hws.vmid_mask = packet.bitfields2.vmid_mask;
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

static void unmap_all(struct gpu *gpu, bool with_waves)
{
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++)
		if (gpu->queues[i].active && gpu->queues[i].is_user)
			unmap(gpu, &gpu->queues[i], with_waves);
	gpu->hws.vmid_used = 0;
}

static uint16_t pasid_of(const struct gpu *gpu, const struct queue *queue)
{
	return gpu->regs[REG(OSSSYS, mmIH_VMID_0_LUT) + queue->space.vmid];
}

static bool is_selected(const struct gpu *gpu, const struct queue *queue,
			const struct pm4_mes_unmap_queues *packet)
{
	switch (packet->bitfields2.queue_sel) {
	case queue_sel__mes_unmap_queues__perform_request_on_specified_queues:
		return queue->has_doorbell &&
		       queue->doorbell == packet->bitfields3b.doorbell_offset0;
	case queue_sel__mes_unmap_queues__perform_request_on_pasid_queues:
		return queue->is_user && pasid_of(gpu, queue) == packet->bitfields3a.pasid;
	default:
		return queue->is_user;
	}
}

int hws_unmap_queues(struct gpu *gpu, const struct queue *by, const uint32_t *dw)
{
	struct pm4_mes_unmap_queues packet;
	unsigned int i;

	memcpy(&packet, dw, sizeof(packet));
	for (i = 0; i < QUEUE_MAX; i++) {
		struct queue *queue = &gpu->queues[i];

		if (!queue->active || queue == by || (queue->kind == QUEUE_SDMA && !queue->is_user))
			continue;
		if (is_selected(gpu, queue, &packet))
			unmap(gpu, queue,
			      packet.bitfields2.action == action__mes_unmap_queues__preempt_queues);
	}
	if (packet.bitfields2.queue_sel >= queue_sel__mes_unmap_queues__unmap_all_queues) {
		gpu->hws.vmid_used = 0;
		gpu->hws.takes_turns = false;
	}
	return 0;
}

/* The driver waits for the fence to know that all queues are unmapped. */
int hws_query_status(struct gpu *gpu, const struct queue *by, const uint32_t *dw)
{
	struct pm4_mes_query_status packet;

	memcpy(&packet, dw, sizeof(packet));
	return memory_write64(gpu, queue_space(by), join(packet.addr_lo, packet.addr_hi),
			      join(packet.data_lo, packet.data_hi));
}

/* -EBUSY: all VMIDs are taken. */
static int map_process(struct gpu *gpu, const uint32_t *dw, unsigned int *ret_vmid)
{
	struct pm4_mes_map_process_aldebaran packet;
	uint32_t unused = gpu->hws.vmid_mask & ~gpu->hws.vmid_used;
	uint64_t directory;
	unsigned int vmid;

	if (!unused)
		return -EBUSY;
	memcpy(&packet, dw, sizeof(packet));
	vmid = __builtin_ctz(unused);
	gpu->hws.vmid_used |= 1u << vmid;
	directory = join(packet.vm_context_page_table_base_addr_lo32,
			 packet.vm_context_page_table_base_addr_hi32);
	memory_set_directory(gpu, vmid, directory);
	ih_set_pasid(gpu, vmid, packet.bitfields2.pasid);
	report_log(&gpu->report, REPORT_QUEUES,
		   "scheduler: PASID %#x gets VMID %u, page directory %#llx",
		   packet.bitfields2.pasid, vmid, (unsigned long long)directory);
	*ret_vmid = vmid;
	return 0;
}

struct list_reader {
	uint64_t address;
	uint32_t dw[MAX_DWORDS];
	uint32_t dwords, op;
	unsigned int vmid; /* of the last process; 0: none */
};

static int read_packet(struct gpu *gpu, struct list_reader *reader)
{
	uint64_t left = (gpu->hws.list_end - reader->address) / sizeof(uint32_t);
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
		return map_process(gpu, reader->dw, &reader->vmid);
	case IT_MAP_QUEUES:
		if (!reader->vmid || reader->dwords < MAP_DWORDS)
			return refuse(gpu, "a queue without a process", reader->dw[0]);
		memcpy(&queue, reader->dw, sizeof(queue));
		return map_user_queue(gpu, &queue, reader->vmid);
	case IT_NOP:
		return 0;
	default:
		return refuse(gpu, "unknown packet in a run list", reader->dw[0]);
	}
}

/* The list ends with a RUN_LIST that begins it again if there are more processes or queues than the
 * driver thinks the hardware has room for. */
static bool is_at_end(const struct gpu *gpu, struct list_reader *reader)
{
	return reader->address >= gpu->hws.list_end || reader->op == IT_RUN_LIST;
}

/* Maps processes from gpu->hws.next on, once around the list at most. */
static int map_list(struct gpu *gpu)
{
	struct hws *hws = &gpu->hws;
	struct list_reader reader = { .address = hws->next };
	bool has_wrapped = false;
	int ret = 0;

	while (!has_wrapped || reader.address < hws->next) {
		reader.op = IT_NOP;
		if (reader.address < hws->list_end)
			ret = read_packet(gpu, &reader);
		if (ret == 0 && is_at_end(gpu, &reader)) {
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

int hws_run_list(struct gpu *gpu, const uint32_t *dw)
{
	struct pm4_mes_runlist packet;

	memcpy(&packet, dw, sizeof(packet));
	unmap_all(gpu, true);
	gpu->hws.list = join(packet.ordinal2 & ~3u, packet.ib_base_hi);
	gpu->hws.list_end = gpu->hws.list + sizeof(uint32_t) * (uint64_t)packet.bitfields4.ib_size;
	gpu->hws.next = gpu->hws.list;
	return map_list(gpu);
}

int hws_run(struct gpu *gpu)
{
	struct hws *hws = &gpu->hws;
	uint64_t now;

	if (!hws->takes_turns)
		return -1;
	now = gpu_now_ns();
	if (now < hws->turn_ends_ns)
		return (int)((hws->turn_ends_ns - now + NS_PER_MS - 1) / NS_PER_MS);
	unmap_all(gpu, true);
	if (map_list(gpu) < 0) {
		hws->takes_turns = false;
		report_violation(&gpu->report, "scheduler: cannot read the run list again");
	}
	return 0;
}
