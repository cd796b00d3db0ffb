// SPDX-License-Identifier: GPL-2.0-only
/* Vector instructions over all lanes of a wave: a loop around each expression in gcn_ops.h, which
 * the compiler can make into vector instructions of the processor. */
#include "gcn_division.h"
#include "gcn_ints.h"
#include "gcn_trig.h"

/* An operand of @width dwords in a lane. */
static inline u64 source(const u32 *low, const u32 *high, u32 width, u32 lane)
{
	if (!width)
		return 0;
	return width == 1 ? low[lane] : low[lane] | (u64)high[lane] << 32;
}

/* Registers that a loop reads and writes are never the same: gcn_exec.c copies the results. */
#define LANES(name, d, s0, s1, s2, flags, expression)                                         \
	static void lanes_##name(struct sim_gcn_lanes *l)                                     \
	{                                                                                     \
		const u32 *const a0 = l->src[0][0], *const a1 = l->src[0][1];                 \
		const u32 *const b0 = l->src[1][0], *const b1 = l->src[1][1];                 \
		const u32 *const c0 = l->src[2][0], *const c1 = l->src[2][1];                 \
		u32 *restrict const low = l->result[0], *restrict const high = l->result[1];  \
		u64 carries = 0;                                                              \
		u32 lane;                                                                     \
                                                                                              \
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {                                \
			struct sim_gcn_alu alu = { .carry = l->carries >> lane & 1,           \
						   .old = KEEPS & (flags) ? l->old[lane] : 0, \
						   .lane = lane },                            \
                                                                                              \
					   *x = &alu;                                         \
			u64 a = source(a0, a1, s0, lane), b = source(b0, b1, s1, lane);       \
			u64 c = source(c0, c1, ACCUMULATES & (flags) ? (d) : (s2), lane);     \
			u64 value = (u64)(expression);                                        \
                                                                                              \
			(void)a, (void)b, (void)c, (void)x;                                   \
			low[lane] = (u32)value;                                               \
			if ((d) > 1)                                                          \
				high[lane] = (u32)(value >> 32);                              \
			if (CARRY_OUT & (flags))                                              \
				carries |= (u64)alu.carry << lane;                            \
		}                                                                             \
		l->carries = carries;                                                         \
	}

#define OP(name, format, code, d, s0, s1, s2, flags, expression) \
	LANES(name, d, s0, s1, s2, flags, expression)
#include "gcn_ops.h"
#undef OP

#define IS_VECTOR(format) ((format) >= SIM_GCN_VOP1 && (format) <= SIM_GCN_VOP3)

static void (*const lanes[SIM_GCN_OPS])(struct sim_gcn_lanes *) = {
#define OP(name, format, ...) [SIM_GCN_##name] = IS_VECTOR(SIM_GCN_##format) ? lanes_##name : NULL,
#include "gcn_ops.h"
#undef OP
};

void sim_gcn_compute_lanes(enum sim_gcn_op op, struct sim_gcn_lanes *l)
{
	lanes[op](l);
}

/* A bit of each byte, which is 0 or 1: a product moves those of eight bytes side by side. */
static u64 mask_of(const u8 *flags)
{
	u64 mask = 0, eight;
	u32 i;

	for (i = 0; i < SIM_GCN_LANES; i += 8) {
		memcpy(&eight, flags + i, sizeof(eight));
		mask |= (eight * 0x0102040810204080ull >> 56) << i;
	}
	return mask;
}

/* Makes a mask of the lanes for which the expression of @i is true. */
#define MASK(expression)                              \
	({                                            \
		u8 flags[SIM_GCN_LANES];              \
		u32 i;                                \
                                                      \
		for (i = 0; i < SIM_GCN_LANES; i++)   \
			flags[i] = (expression) != 0; \
		mask_of(flags);                       \
	})

static u64 pair_at(const u32 *const *operand, u32 lane)
{
	return operand[0][lane] | (u64)operand[1][lane] << 32;
}

static u64 compare_classes(u32 code, const struct sim_gcn_lanes *l)
{
	const u32 *a = l->src[0][0], *classes = l->src[1][0];

	if (code >= 0x14)
		return MASK(class16(a[i]) & classes[i]);
	if (code >= 0x12)
		return MASK(class64(pair_at(l->src[0], i)) & classes[i]);
	return MASK(class32(a[i]) & classes[i]);
}

/* Integers of 32 bits, which loops and masks of compilers compare most. Signed ones have the order
 * of unsigned ones when their signs are turned. */
static u64 compare_words(u32 code, const u32 *a, const u32 *b)
{
	u32 sign = code & 8 ? 0 : 1u << 31;
	u64 less = MASK((a[i] ^ sign) < (b[i] ^ sign)), equal = MASK(a[i] == b[i]);

	return (code & 1 ? less : 0) | (code & 2 ? equal : 0) | (code & 4 ? ~(less | equal) : 0);
}

void sim_gcn_compare_lanes(u32 code, struct sim_gcn_lanes *l)
{
	const u32 *a = l->src[0][0], *b = l->src[1][0];

	switch (code & 0xe0) {
	case 0x00:
		l->carries = compare_classes(code, l);
		break;
	case 0x20:
		l->carries = MASK(compares(code, f16(a[i]), f16(b[i])));
		break;
	case 0x40:
		l->carries = MASK(compares(code, f32(a[i]), f32(b[i])));
		break;
	case 0x60:
		l->carries = MASK(
			compares(code, f64(pair_at(l->src[0], i)), f64(pair_at(l->src[1], i))));
		break;
	case 0xe0:
		l->carries =
			MASK(sim_gcn_compare(code, pair_at(l->src[0], i), pair_at(l->src[1], i)));
		break;
	case 0xc0:
		l->carries = compare_words(code, a, b);
		break;
	default:
		l->carries = MASK(sim_gcn_compare(code, a[i], b[i]));
	}
}
