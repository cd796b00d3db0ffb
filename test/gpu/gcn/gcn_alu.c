// SPDX-License-Identifier: GPL-2.0-only
/* The table of all instructions, and what an expression in gcn_ops.h gives for one lane or for
 * scalar operands. */
#include "gcn_division.h"
#include "gcn_ints.h"
#include "gcn_trig.h"

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

const struct sim_gcn_row sim_gcn_rows[SIM_GCN_OPS] = {
#define OP(name, format, code, d, s0, s1, s2, flags, expression) \
	[SIM_GCN_##name] = { #name, SIM_GCN_##format, { d, s0, s1, s2 }, code, flags, do_##name },
#include "gcn_ops.h"
#undef OP
	[SIM_GCN_v_cmp] = { "v_cmp", SIM_GCN_VOPC, { 2, 1, 1, 0 }, 0, 0, NULL },
};

u64 sim_gcn_compute(enum sim_gcn_op op, struct sim_gcn_alu *alu)
{
	u64 value = sim_gcn_rows[op].compute(alu);

	return sim_gcn_rows[op].width[0] == 1 ? (u32)value : value;
}

/* Codes: bits 6:5 16, 32 or 64 bits, bit 3 unsigned, bits 2:0 F LT EQ LE GT NE GE T. */
bool sim_gcn_compare(u32 code, u64 a, u64 b)
{
	u32 unused = (code & 0x60) == 0x20 ? 48 : (code & 0x60) == 0x40 ? 32 : 0;
	bool less;

	a <<= unused;
	b <<= unused;
	less = code & 8 ? a < b : (s64)a < (s64)b;
	if (a == b)
		return code >> 1 & 1;
	return less ? code & 1 : code >> 2 & 1;
}

u64 sim_gcn_constant(const struct sim_gcn_inst *inst, u32 operand, u32 width)
{
	/* 0.5, 1, 2 and 4 with both signs, and 1 / (2 pi) */
	static const double floats[] = { 0.5, -0.5, 1, -1, 2, -2, 4, -4, M_1_PI / 2 };
	u64 value;

	if (operand == SIM_GCN_LITERAL)
		return width > 1 && inst->flags & SIM_GCN_FLOAT ? (u64)inst->literal << 32
								: inst->literal;
	if (operand >= 240 && inst->flags & SIM_GCN_HALF)
		return of16(floats[operand - 240]);
	if (operand >= 240)
		return width > 1 ? of64(floats[operand - 240]) : of32((float)floats[operand - 240]);
	value = operand <= 192 ? operand - SIM_GCN_ZERO : 192 - (u64)operand;
	return width > 1 ? value : (u32)value;
}
