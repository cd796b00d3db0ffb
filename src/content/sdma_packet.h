/* SPDX-License-Identifier: GPL-2.0-only */
/* What the copy engine (SDMA) is told: packets that copy bytes from one GPU
 * address to another. Pure. */
#ifndef AMDGPU_PLUGIN_CONTENT_SDMA_PACKET_H
#define AMDGPU_PLUGIN_CONTENT_SDMA_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A dword is 32 bits; the longest copy packet and the padding unit (sdma_v4_0.c: *_ring_pad_ib),
 * filled with NOPs. */
#define PACKET_COPY_DWORDS 7
#define PACKET_PAD_DWORDS  8
#define PACKET_NOP         0u

struct packet_format {
	/* Most bytes a copy packet moves (copy_max_bytes in sdma_v*.c). */
	uint32_t copy_max;
	/* The count field holds bytes - 1 (SDMA 4 and later) rather than bytes. */
	bool count_minus_one;
};

/* The packet format of a GPU family (AMDGPU_FAMILY_* in amdgpu_drm.h). -EOPNOTSUPP: not known. */
int sdma_packet_find_format(uint32_t family, struct packet_format *ret_format);

/* Writes the packets that copy @size bytes to @dwords, which has room for
 * sdma_packet_copy_dwords(format, size), and returns how many dwords it wrote. */
size_t sdma_packet_emit_copy(const struct packet_format *format, uint32_t *dwords, uint64_t from,
			     uint64_t to, uint64_t size);
size_t sdma_packet_copy_dwords(const struct packet_format *format, uint64_t size);

#endif
