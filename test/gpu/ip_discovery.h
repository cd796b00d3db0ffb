/* SPDX-License-Identifier: GPL-2.0-only */
/* The table in video memory that tells the driver which blocks the chip has, and where their
 * registers are (amdgpu_discovery.c, discovery.h). Chips since gfx10 and gfx942 have it. */
#ifndef TEST_GPU_IP_DISCOVERY_H
#define TEST_GPU_IP_DISCOVERY_H

#include <stddef.h>
#include <stdint.h>

#define DISCOVERY_BASES    9u
#define DISCOVERY_BYTES    (10u << 10) /* that much the driver reads */
#define DISCOVERY_FROM_END (64u << 10) /* of video memory */

/* A block with its instances. The bases of each next one lie 1 << ASIC_INSTANCE_SHIFT further. */
struct discovery_block {
	uint16_t hw_id; /* soc15_hw_ip.h */
	uint8_t major, minor, revision;
	uint8_t first, step, instances; /* their numbers */
	uint8_t num_bases;
	uint32_t bases[DISCOVERY_BASES];
};

/* Of each XCC. */
struct discovery_compute {
	uint32_t shader_engines, cus_per_engine;
};

/* @table: DISCOVERY_BYTES. */
void discovery_write(uint8_t *table, const struct discovery_block *blocks, size_t num_blocks,
		     const struct discovery_compute *compute);

#endif
