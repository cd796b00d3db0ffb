// SPDX-License-Identifier: GPL-2.0-only
/* Builds the copy packets of each GPU generation. */
#include "content/sdma_packet.h"

#include <errno.h>

#define SDMA_OP_COPY_LINEAR 1u

int sdma_packet_find_format(uint32_t major, uint32_t minor, struct packet_format *ret_format)
{
	/* The count has 21 bits on Sea Islands (SDMA 2.0), and 22 bits on Volcanic Islands (2.4 and
	 * 3). Southern Islands (1) have another packet. */
	if (major == 2 && minor < 4)
		*ret_format = (struct packet_format){ .copy_max = 0x1ff000 };
	else if (major == 2 || major == 3)
		*ret_format = (struct packet_format){ .copy_max = 0x3fe000 };
	/* SDMA 7 (gfx12) has an eighth dword and a bit that announces it. By
	 * preflight_lacks_copy_packets(), a dump refuses BOs on such a GPU. */
	else if (major >= 4 && major <= 6)
		*ret_format =
			(struct packet_format){ .copy_max = 0x400000, .count_minus_one = true };
	else
		return -EOPNOTSUPP;
	return 0;
}

size_t sdma_packet_copy_dwords(const struct packet_format *format, uint64_t size)
{
	return (size + format->copy_max - 1) / format->copy_max * PACKET_COPY_DWORDS;
}

size_t sdma_packet_emit_copy(const struct packet_format *format, uint32_t *dwords, uint64_t from,
			     uint64_t to, uint64_t size)
{
	size_t used = 0;

	while (size) {
		uint32_t bytes = size < format->copy_max ? (uint32_t)size : format->copy_max;

		dwords[used++] = SDMA_OP_COPY_LINEAR;
		dwords[used++] = format->count_minus_one ? bytes - 1 : bytes;
		dwords[used++] = 0;
		dwords[used++] = (uint32_t)from;
		dwords[used++] = (uint32_t)(from >> 32);
		dwords[used++] = (uint32_t)to;
		dwords[used++] = (uint32_t)(to >> 32);
		from += bytes;
		to += bytes;
		size -= bytes;
	}
	return used;
}
