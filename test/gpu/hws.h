/* SPDX-License-Identifier: GPL-2.0-only */
/* The hardware scheduler: what the firmware of the command processor does for KFD
 * (kfd_packet_manager_v9.c). A run list names processes and their queues. Each process gets a VMID,
 * and its queues are mapped; the next run list, or UNMAP_QUEUES, takes them off again. A partition
 * of several XCCs has one scheduler. */
#ifndef TEST_GPU_HWS_H
#define TEST_GPU_HWS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct queue;

struct hws {
	uint32_t vmid_mask; /* the scheduler's VMIDs, a bit for each */
	uint32_t vmid_used;
	/* The run list. If its processes are too many for the VMIDs, they take turns. */
	uint64_t list, list_end;
	uint64_t next; /* the process that gets the next free VMID */
	bool takes_turns;
	uint64_t turn_ends_ns;
};

/* Packets of the queue @by, as dwords: 0, -EFAULT, or -EINVAL after a violation. */
int hws_set_resources(struct gpu *gpu, const struct queue *by, const uint32_t *dw);
int hws_run_list(struct gpu *gpu, const struct queue *by, const uint32_t *dw);
int hws_map_queue(struct gpu *gpu, const struct queue *by, const uint32_t *dw);
int hws_unmap_queues(struct gpu *gpu, const struct queue *by, const uint32_t *dw);
int hws_query_status(struct gpu *gpu, const struct queue *by, const uint32_t *dw);

/* Lets the next processes have their turn. Returns as queues_run() does. */
int hws_run(struct gpu *gpu);

#endif
