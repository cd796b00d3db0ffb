// SPDX-License-Identifier: GPL-2.0-only
/* Integer instructions, made of the expressions in gcn_ops.h, and the table of all instructions. */
#include "gcn.h"

#define SIGN 0x80000000ull

static u64 carry(struct sim_gcn_alu *x, u64 out, u64 value)
{
	x->carry = out != 0;
	return value;
}

static u64 add_carry(struct sim_gcn_alu *x, u64 a, u64 b)
{
	u64 sum = a + b + x->carry;

	return carry(x, sum >> 32, sum);
}

static u64 sub_borrow(struct sim_gcn_alu *x, u64 a, u64 b)
{
	u64 less = b + x->carry;

	return carry(x, less > a, a - less);
}

static u64 some32(struct sim_gcn_alu *x, u64 value)
{
	return carry(x, (u32)value, value);
}

static u64 some64(struct sim_gcn_alu *x, u64 value)
{
	return carry(x, value, value);
}

static bool overflows(s64 value)
{
	return value != (s32)value;
}

static u64 bits(u64 value, u64 offset, u64 width)
{
	value >>= offset;
	return width >= 64 ? value : value & ((1ull << width) - 1);
}

static u64 signed_bits(u64 value, u64 offset, u64 width)
{
	u64 part = bits(value, offset, width);

	return width && width < 64 && part >> (width - 1) & 1 ? part | ~0ull << width : part;
}

static u64 reversed(u64 value)
{
	u64 result = 0;
	u32 i;

	for (i = 0; i < 64; i++)
		result |= (value >> i & 1) << (63 - i);
	return result;
}

static u64 count_ones(u64 value)
{
	u64 ones;

	for (ones = 0; value; ones++)
		value &= value - 1;
	return ones;
}

static u64 lowest(u64 value)
{
	u32 at = 0;

	if (!value)
		return ~0ull;
	while (!(value >> at & 1))
		at++;
	return at;
}

static u64 from_top(u64 value)
{
	u32 at = 0;

	if (!value)
		return ~0ull;
	while (!(value << at >> 63))
		at++;
	return at;
}

static u64 least(u64 a, u64 b, u64 c)
{
	u64 less = min(a, b);

	return min(less, c);
}

static u64 most(u64 a, u64 b, u64 c)
{
	u64 more = max(a, b);

	return max(more, c);
}

static u64 middle(u64 a, u64 b, u64 c)
{
	return a + b + c - least(a, b, c) - most(a, b, c);
}

/* v_perm_b32: selects from eight bytes, from their signs, or constants. */
static u64 permute(u64 bytes, u64 selectors)
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

/* A half of each source. */
static u64 halves(const struct sim_gcn_alu *x, u64 a, u64 b)
{
	return (u32)(x->select & 1 ? a >> 32 : a) | (x->select & 2 ? b >> 32 : b) << 32;
}

#define OP(name, format, code, d, s0, s1, s2, flags, expression) \
	static u64 do_##name(struct sim_gcn_alu *x)              \
	{                                                        \
		u64 a = x->src[0], b = x->src[1], c = x->src[2]; \
                                                                 \
		(void)a, (void)b, (void)c;                       \
		return (u64)(expression);                        \
	}
#include "gcn_ops.h"
#undef OP

#define SOP2        SIM_GCN_SOP2
#define SOP1        SIM_GCN_SOP1
#define SOPC        SIM_GCN_SOPC
#define SOPK        SIM_GCN_SOPK
#define SOPP        SIM_GCN_SOPP
#define SMEM        SIM_GCN_SMEM
#define VOP1        SIM_GCN_VOP1
#define VOP2        SIM_GCN_VOP2
#define VOP3        SIM_GCN_VOP3
#define DS          SIM_GCN_DS
#define FLAT        SIM_GCN_FLAT
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

const struct sim_gcn_row sim_gcn_rows[SIM_GCN_OPS] = {
#define OP(name, format, code, d, s0, s1, s2, flags, expression) \
	[SIM_GCN_##name] = { #name, format, { d, s0, s1, s2 }, code, flags, do_##name },
#include "gcn_ops.h"
#undef OP
	[SIM_GCN_v_cmp] = { "v_cmp", SIM_GCN_VOPC, { 2, 1, 1, 0 }, 0, 0, NULL },
};

u64 sim_gcn_compute(enum sim_gcn_op op, struct sim_gcn_alu *alu)
{
	u64 value = sim_gcn_rows[op].compute(alu);

	return sim_gcn_rows[op].width[0] == 1 ? (u32)value : value;
}

/* Codes: bit 5 64 bits, bit 3 unsigned, bits 2:0 F LT EQ LE GT NE GE T. */
bool sim_gcn_compare(u32 code, u64 a, u64 b)
{
	bool less;

	if (code & 8)
		less = a < b;
	else if (code & 0x20)
		less = (s64)a < (s64)b;
	else
		less = (s32)a < (s32)b;
	if (a == b)
		return code >> 1 & 1;
	return less ? code & 1 : code >> 2 & 1;
}

u64 sim_gcn_constant(const struct sim_gcn_inst *inst, u32 operand, u32 width)
{
	/* 0.5, 1, 2 and 4 with both signs, and 1 / (2 pi) */
	static const u64 floats[][2] = {
		{ 0x3f000000, 0x3fe0000000000000 }, { 0xbf000000, 0xbfe0000000000000 },
		{ 0x3f800000, 0x3ff0000000000000 }, { 0xbf800000, 0xbff0000000000000 },
		{ 0x40000000, 0x4000000000000000 }, { 0xc0000000, 0xc000000000000000 },
		{ 0x40800000, 0x4010000000000000 }, { 0xc0800000, 0xc010000000000000 },
		{ 0x3e22f983, 0x3fc45f306dc9c882 },
	};
	u64 value;

	if (operand == SIM_GCN_LITERAL)
		return inst->literal;
	if (operand >= 240)
		return floats[operand - 240][width > 1];
	value = operand <= 192 ? operand - SIM_GCN_ZERO : 192 - (u64)operand;
	return width > 1 ? value : (u32)value;
}
