/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets of the copy engine (SDMA) that copy bytes from one GPU address to another. These
 * functions call no other unit; sdma_submit() sends the packets to the engine. */
#ifndef AMDGPU_PLUGIN_CONTENT_SDMA_PACKET_H
#define AMDGPU_PLUGIN_CONTENT_SDMA_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A dword is 32 bits. The dwords of the longest copy packet, and the unit to which NOPs pad a
 * command buffer (*_ring_pad_ib in the kernel's sdma_v4_0.c). */
#define PACKET_COPY_DWORDS 7
#define PACKET_PAD_DWORDS  8
#define PACKET_NOP         0u

struct packet_format {
	/* The most bytes that a copy packet copies (copy_max_bytes in the kernel's sdma_v*.c). */
	uint32_t copy_max;
	/* The count field holds bytes - 1 (SDMA 4 and later) instead of bytes. */
	bool count_minus_one;
};

/* The packet format of an engine, by the version of the IP block SDMA that the driver tells
 * (sdma_v*_ip_block). The family of the GPU is no substitute: kernels gave GC 11.5.4 another family
 * than the rest of gfx11, and took it back. -EOPNOTSUPP: unknown. */
int sdma_packet_find_format(uint32_t major, uint32_t minor, struct packet_format *ret_format);

/* Writes the packets that copy @size bytes to @dwords, an array of at least
 * sdma_packet_copy_dwords(format, size). Returns the number of dwords written. */
size_t sdma_packet_emit_copy(const struct packet_format *format, uint32_t *dwords, uint64_t from,
			     uint64_t to, uint64_t size);
size_t sdma_packet_copy_dwords(const struct packet_format *format, uint64_t size);

#endif
