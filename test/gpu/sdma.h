/* SPDX-License-Identifier: GPL-2.0-only */
/* The copy engines (sdma_v4_0.c, SDMA 4.4; sdma_v4_4_2.c): the driver's rings, which registers
 * describe, and the packets of these and of queues of processes. */
#ifndef TEST_GPU_SDMA_H
#define TEST_GPU_SDMA_H

#include <stdint.h>

#include "memory.h"

struct gpu;
struct queue;

struct sdma_engine {
	uint64_t packets, copies, copied_bytes;
	uint64_t busy_until_ns;
};

#define SDMA_ENGINES_OF_AID 4u

void sdma_register_written(struct gpu *gpu, uint32_t reg, uint32_t value);

/* Runs one packet: 0, -EAGAIN it has to wait, -EFAULT, or -EINVAL after a violation. */
int sdma_step(struct gpu *gpu, struct queue *queue);
/* Whether the engine can run a packet: 0 now, milliseconds to wait, or -1 not by itself. */
int sdma_wait_ms(struct gpu *gpu, const struct queue *queue);
/* Writes the read pointer where its readers look: 0 or -EFAULT. */
int sdma_report(struct gpu *gpu, const struct queue *queue);
/* Counts a copy, and lets it take its time. */
void sdma_count_copy(struct gpu *gpu, unsigned int engine, uint64_t size_bytes);
/* VMID 0 of the engine's hub. */
struct space sdma_space(const struct gpu *gpu, unsigned int engine);

#endif
