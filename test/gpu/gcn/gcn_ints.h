/* SPDX-License-Identifier: GPL-2.0-only */
/* Integer functions and flags for the expressions in gcn_ops.h. */
#ifndef SIM_GCN_INTS_H
#define SIM_GCN_INTS_H

#include "gcn.h"

/* Flags of rows, as gcn_ops.h names them. */
#define SAVEEXEC    SIM_GCN_SAVEEXEC
#define COMPARES    SIM_GCN_COMPARES
#define IMMEDIATE   SIM_GCN_IMMEDIATE
#define TO_SCALAR   SIM_GCN_TO_SCALAR
#define FLOAT       SIM_GCN_FLOAT
#define FROM_INT    SIM_GCN_FROM_INT
#define SIGNS       SIM_GCN_SIGNS
#define CARRY_IN    SIM_GCN_CARRY_IN
#define CARRY_OUT   SIM_GCN_CARRY_OUT
#define ACCUMULATES SIM_GCN_ACCUMULATES
#define LOAD        SIM_GCN_LOAD
#define STORE       SIM_GCN_STORE
#define ATOMIC      SIM_GCN_ATOMIC
#define SIGNED      SIM_GCN_SIGNED
#define PAIR        SIM_GCN_PAIR
#define FAR         SIM_GCN_FAR
#define HALF        SIM_GCN_HALF
#define HAS_LITERAL SIM_GCN_HAS_LITERAL
#define VCC_IN      SIM_GCN_VCC_IN
#define LAST_INT    SIM_GCN_LAST_INT
#define PLAIN       SIM_GCN_PLAIN
#define CLAMPS      SIM_GCN_CLAMPS
#define PACKED_HALF SIM_GCN_PACKED_HALF
#define PACKED_WIDE SIM_GCN_PACKED_WIDE
#define MIXED       SIM_GCN_MIXED
#define KEEPS       SIM_GCN_KEEPS
#define HIGH        SIM_GCN_HIGH
#define D16         SIM_GCN_D16
#define ACROSS      SIM_GCN_ACROSS
#define MATRIX      SIM_GCN_MATRIX

#define SIGN 0x80000000ull

/* What gcn_matrix.c reads of a row: rows and columns, blocks, and the kind of the elements. */
enum matrix_kind { MATRIX_FLOATS, MATRIX_HALVES, MATRIX_BFLOATS, MATRIX_BYTES };

static inline u64 matrices(u32 side, u32 blocks, enum matrix_kind kind)
{
	return side | blocks << 8 | (u32)kind << 16;
}

static inline u64 carry(struct sim_gcn_alu *x, u64 out, u64 value)
{
	x->carry = out != 0;
	return value;
}

static inline u64 add_carry(struct sim_gcn_alu *x, u64 a, u64 b)
{
	u64 sum = a + b + x->carry;

	return carry(x, sum >> 32, sum);
}

static inline u64 sub_borrow(struct sim_gcn_alu *x, u64 a, u64 b)
{
	u64 less = b + x->carry;

	return carry(x, less > a, a - less);
}

static inline u64 some32(struct sim_gcn_alu *x, u64 value)
{
	return carry(x, (u32)value, value);
}

static inline u64 some64(struct sim_gcn_alu *x, u64 value)
{
	return carry(x, value, value);
}

static inline bool overflows(s64 value)
{
	return value != (s32)value;
}

static inline u64 bits(u64 value, u64 offset, u64 width)
{
	value >>= offset;
	return width >= 64 ? value : value & ((1ull << width) - 1);
}

static inline u64 signed_bits(u64 value, u64 offset, u64 width)
{
	u64 part = bits(value, offset, width);

	return width && width < 64 && part >> (width - 1) & 1 ? part | ~0ull << width : part;
}

static inline u64 reversed(u64 value)
{
	u64 result = 0;
	u32 i;

	for (i = 0; i < 64; i++)
		result |= (value >> i & 1) << (63 - i);
	return result;
}

static inline u64 count_ones(u64 value)
{
	u64 ones;

	for (ones = 0; value; ones++)
		value &= value - 1;
	return ones;
}

static inline u64 lowest(u64 value)
{
	u32 at = 0;

	if (!value)
		return ~0ull;
	while (!(value >> at & 1))
		at++;
	return at;
}

static inline u64 from_top(u64 value)
{
	u32 at = 0;

	if (!value)
		return ~0ull;
	while (!(value << at >> 63))
		at++;
	return at;
}

static inline u64 least(u64 a, u64 b, u64 c)
{
	u64 less = min(a, b);

	return min(less, c);
}

static inline u64 most(u64 a, u64 b, u64 c)
{
	u64 more = max(a, b);

	return max(more, c);
}

static inline u64 middle(u64 a, u64 b, u64 c)
{
	return a + b + c - least(a, b, c) - most(a, b, c);
}

/* v_perm_b32: selects from eight bytes, from their signs, or constants. */
static inline u64 permute(u64 bytes, u64 selectors)
{
	u64 result = 0;
	u32 i;

	for (i = 0; i < 4; i++) {
		u32 which = selectors >> 8 * i & 0xff;
		u64 byte = 0xff;

		if (which < 8)
			byte = bytes >> 8 * which & 0xff;
		else if (which < 12)
			byte = bytes >> (16 * (which - 8) + 15) & 1 ? 0xff : 0;
		else if (which == 12)
			byte = 0;
		result |= byte << 8 * i;
	}
	return result;
}

/* The sum of four products of signed bytes. */
static inline u64 dot8(u64 a, u64 b)
{
	s32 sum = 0;
	u32 i;

	for (i = 0; i < 32; i += 8)
		sum += (int8_t)(a >> i) * (int8_t)(b >> i);
	return (u64)sum;
}

/* v_mad_i64_i32: the carry tells that the sum has overflowed. */
static inline u64 multiply_add(struct sim_gcn_alu *x, s64 a, s64 b, u64 c)
{
	s64 sum;

	x->carry = __builtin_add_overflow(a * b, (s64)c, &sum);
	return (u64)sum;
}

#endif
