/* SPDX-License-Identifier: GPL-2.0-only */
/* v_trig_preop_f64 for the expressions in gcn_ops.h: parts of 2 / pi, of which products with a
 * large number have its angle in quarters of a turn. */
#ifndef SIM_GCN_TRIG_H
#define SIM_GCN_TRIG_H

#include "gcn_floats.h"

/* The 1201 bits behind the point that the GPU has, and zeros. */
static const u64 two_over_pi[] = {
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b0000,
};

/* @count bits, at most 63, from the bit @first behind the point on. */
static inline u64 two_over_pi_bits(u32 first, u32 count)
{
	u32 word = first / 64, bit = first % 64;
	u64 bits = word < ARRAY_SIZE(two_over_pi) ? two_over_pi[word] << bit : 0;

	if (bit && word + 1 < ARRAY_SIZE(two_over_pi))
		bits |= two_over_pi[word + 1] >> (64 - bit);
	return bits >> (64 - count);
}

/* The part with number @part, of 53 bits. Those bits are left out before whose products with the
 * value are whole turns. Products with the largest values would be too large for a double, so the
 * program divides these values by 2^128, and the part is as much larger. */
static inline double trig_preop(u64 value, u32 part)
{
	s32 exponent = (s32)(value >> 52 & 0x7ff), skipped = exponent - 1077;
	s32 shift = (s32)(part & 31) * 53 + (skipped > 0 ? skipped : 0);
	s32 scale = exponent >= 1968 ? 128 : 0;

	return ldexp((double)two_over_pi_bits((u32)shift, 53), scale - 53 - shift);
}

#endif
