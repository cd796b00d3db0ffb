/* SPDX-License-Identifier: GPL-2.0-only */
/* XGMI: the GPUs of a hive reach each other's video memory. Physical addresses of video memory are
 * those of the hive: each GPU is a node, and the memory of node n begins at n segments
 * (gfxhub_v1_1.c, gmc_v9_0.c). A GPU alone is node 0. */
#ifndef TEST_GPU_HIVE_H
#define TEST_GPU_HIVE_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;

#define HIVE_MAX_NODES     16u           /* gfxhub_v1_1_get_xgmi_info() accepts no more */
#define HIVE_SEGMENT_BYTES (64ull << 30) /* the memory of an MI210 */

struct hive {
	unsigned int num_nodes;
	struct gpu *nodes[HIVE_MAX_NODES];
};

/* Makes the GPUs nodes of the hive and resets them, so that their registers tell the driver. With
 * one GPU there are no links. */
void hive_connect(struct hive *hive);

/* How many bytes of the physical address space the GPU's driver takes for video memory. */
uint64_t hive_bytes(const struct gpu *gpu);
/* The memory at a physical address, and how many bytes of the same GPU begin there. NULL: no GPU
 * has such memory. */
uint8_t *hive_memory_at(const struct gpu *gpu, uint64_t address, uint64_t *ret_left_bytes);
/* Whether it is memory of this GPU, not of another node. */
bool hive_is_own_memory(const struct gpu *gpu, uint64_t address);

/* Sets the registers that tell the driver of the hive. */
void hive_init_registers(struct gpu *gpu);

#endif
