/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of mapped queues, their doorbells and their turns. What the packets mean is in
 * sdma_packets.c, pm4.c and aql.c. */
#ifndef TEST_GPU_QUEUE_H
#define TEST_GPU_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"

#define QUEUE_MAX 512u

enum queue_kind { QUEUE_SDMA, QUEUE_PM4, QUEUE_AQL };

/* A command buffer outside the ring. */
struct queue_ib {
	struct space space;
	uint64_t address, end;
};

struct aql; /* the packet that an AQL queue works on: aql.h */

struct queue {
	bool active;
	enum queue_kind kind;
	bool is_user;        /* of a process, mapped by the scheduler; otherwise the driver's */
	bool is_faulted;     /* stands still until it is mapped anew */
	unsigned int engine; /* SDMA */
	unsigned int me, pipe, index; /* CP: the place in the hardware, of queues of the driver */
	struct space space;
	uint64_t base, size_bytes;
	uint64_t rptr, wptr;   /* bytes since the beginning */
	uint64_t rptr_address; /* where the queue reports its read pointer, or 0 */
	bool has_doorbell;
	uint32_t doorbell; /* dword of the doorbell BAR */
	uint64_t mqd;      /* address in VMID 0, or 0 */
	/* Of a queue of several XCCs, each of which has an entry of the table with the same
	 * doorbell: how many they are, and the number of this one among them when packet 0 was
	 * queued. */
	unsigned int xccs, xcc_turn;
	unsigned int target_xcc; /* of the partition: the only one that runs a PM4 queue */
	struct queue_ib ib, next_ib;
	uint32_t packet_dwords; /* of the packet at work, or 0 before it is read */
	/* CWSR, of compute queues of processes */
	uint64_t save_area;
	uint32_t save_bytes, stack_bytes;
	struct aql *aql;
};

/* Returns an unused entry, cleared, or NULL after a violation if all are used. */
struct queue *queue_new(struct gpu *gpu);
/* Forgets the queue, and what it worked on. */
void queue_remove(struct queue *queue);
void queues_forget(struct gpu *gpu);

/* A write of the doorbell BAR. */
void queues_ring(struct gpu *gpu, uint32_t doorbell, uint64_t value);
/* Gives all queues some turns. Returns for how many milliseconds at most the caller may sleep
 * before the next call: 0 there is work, -1 until something happens. */
int queues_run(struct gpu *gpu);

/* Bytes of one unit in which the kind counts its pointers. */
unsigned int queue_unit_bytes(const struct queue *queue);
/* The address space of the current packet. */
const struct space *queue_space(const struct queue *queue);
bool queue_is_in_ib(const struct queue *queue);
/* Reads dwords of the program, from the current packet on: 0 or -EFAULT. */
int queue_fetch(struct gpu *gpu, const struct queue *queue, uint32_t first, uint32_t count,
		uint32_t *dwords);
/* Goes on behind the current packet, and into queue->next_ib if that is set: 0 or -EFAULT. */
int queue_advance(struct gpu *gpu, struct queue *queue);

/* Of two times to wait, as queues_run() returns them. */
int queue_shorter(int a, int b);
/* Comparisons of POLL_REGMEM and WAIT_REG_MEM. */
bool queue_compare(uint32_t function, uint32_t value, uint32_t reference);

#endif
