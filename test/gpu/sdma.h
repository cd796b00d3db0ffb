/* SPDX-License-Identifier: GPL-2.0-only */
/* The five copy engines (sdma_v4_0.c, SDMA 4.4): the driver's rings, which registers describe, and
 * the packets of these and of queues of processes. */
#ifndef TEST_GPU_SDMA_H
#define TEST_GPU_SDMA_H

#include <stdint.h>

#define SDMA_ENGINES 5u

struct gpu;
struct queue;

struct sdma_engine {
	uint64_t packets, copies, copied_bytes;
	uint64_t busy_until_ns;
};

/* The first register of an engine. */
uint32_t sdma_base(unsigned int engine);
void sdma_register_written(struct gpu *gpu, uint32_t reg, uint32_t value);

/* Runs one packet: 0, -EAGAIN it has to wait, -EFAULT, or -EINVAL after a violation. */
int sdma_step(struct gpu *gpu, struct queue *queue);
/* Whether the engine can run a packet: 0 now, milliseconds to wait, or -1 not by itself. */
int sdma_wait_ms(struct gpu *gpu, const struct queue *queue);
/* Writes the read pointer where its readers look: 0 or -EFAULT. */
int sdma_report(struct gpu *gpu, const struct queue *queue);
/* Counts a copy, and lets it take its time. */
void sdma_count_copy(struct gpu *gpu, unsigned int engine, uint64_t size_bytes);
/* The engine's name among the clients of the interrupt handler. */
uint8_t sdma_client(unsigned int engine);

#endif
