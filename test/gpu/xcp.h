/* SPDX-License-Identifier: GPL-2.0-only */
/* Compute partitions (aqua_vanjaram.c): which XCCs work together on the queues of a process. The
 * driver tells each XCC with how many others, and the modes differ in nothing else: all in one
 * (SPX), each alone (CPX), and those between. A chip with one XCC has one partition. */
#ifndef TEST_GPU_XCP_H
#define TEST_GPU_XCP_H

#include <stdint.h>

struct gpu;
struct queue;

struct xcp {
	unsigned int first, count; /* XCCs */
};

void xcp_init(struct gpu *gpu);
/* What the register reads that tells the driver the mode: enum amdgpu_gfx_partition. */
uint32_t xcp_status(const struct gpu *gpu);

struct xcp xcp_of(const struct gpu *gpu, unsigned int xcc);
/* The physical engine with the number @engine among those of the partition, or -1. */
int xcp_sdma_engine(const struct gpu *gpu, const struct xcp *xcp, unsigned int engine);
/* The XCC of a queue; of an SDMA queue the XCC whose partition has the engine. */
unsigned int xcp_xcc_of(const struct gpu *gpu, const struct queue *queue);

#endif
