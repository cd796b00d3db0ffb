// SPDX-License-Identifier: GPL-2.0-only
/* Decodes instructions of gfx90a: the formats, and those of scalars and of memory. An instruction
 * is unknown if it is not in the table, or uses a missing feature (clamping of integers, GDS). */
#include "gcn_decode.h"

#define NO_SGPR 127u

static const u16 by_code[SIM_GCN_FORMATS][0x400] = {
#define OP(name, format, code, ...) [SIM_GCN_##format][code] = SIM_GCN_##name,
#include "gcn_ops.h"
#undef OP
};

int sim_gcn_take_row(struct sim_gcn_inst *inst, enum sim_gcn_format table, u32 code)
{
	const struct sim_gcn_row *row;

	if (code >= ARRAY_SIZE(by_code[0]) || !by_code[table][code])
		return -EINVAL;
	inst->op = by_code[table][code];
	row = &sim_gcn_rows[inst->op];
	inst->flags = row->flags;
	memcpy(inst->width, row->width, sizeof(inst->width));
	return 0;
}

/* Whether the generation has @width registers from @operand on. */
bool sim_gcn_is_operand(u32 operand, u32 width, bool vector, bool destination)
{
	if (operand >= SIM_GCN_VGPR0)
		/* gfx90a needs even numbers for pairs and longer groups */
		return vector && operand % SIM_GCN_VGPRS + width <= SIM_GCN_VGPRS &&
		       (width < 2 || operand % 2 == 0);
	if (operand <= 101 || (operand >= 108 && operand <= 123)) {
		u32 end = operand <= 101 ? 102 : 124;

		/* the registers of traps, which programs cannot write */
		return operand + width <= end && operand % min(max(width, 1u), 4u) == 0 &&
		       operand < 108;
	}
	if (operand >= 102 && operand <= 107)
		return width <= 2 && operand % width == 0 &&
		       (operand >= SIM_GCN_VCC || operand <= SIM_GCN_FLAT_SCRATCH + 1);
	if (operand == SIM_GCN_M0)
		return width == 1;
	if (operand == SIM_GCN_EXEC || operand == SIM_GCN_EXEC + 1)
		return width <= 2 && operand % width == 0;
	if (destination)
		return false;
	if (operand == SIM_GCN_SHARED_BASE || operand == SIM_GCN_PRIVATE_BASE)
		return width == 2 && !vector;
	if (operand == SIM_GCN_LITERAL)
		return width <= 2;
	return (operand >= SIM_GCN_ZERO && operand <= 208) || (operand >= 240 && operand <= 248);
}

/* The manual does not say what constants of 32 bits are for floats of 16 bits, nor whether those
 * for integers of 64 bits have a sign. Of a float of 64 bits they are the high half. */
static bool is_doubtful_constant(const struct sim_gcn_inst *inst, u32 operand, u32 width)
{
	bool is_float = inst->flags & SIM_GCN_FLOAT &&
			!(inst->flags & (SIM_GCN_FROM_INT | SIM_GCN_LAST_INT));

	if (operand == SIM_GCN_LITERAL && width == 2)
		return !(inst->flags & SIM_GCN_FLOAT) && inst->literal >> 31;
	if (!(inst->flags & SIM_GCN_HALF) || operand > SIM_GCN_LITERAL)
		return false;
	if (operand == SIM_GCN_LITERAL)
		return is_float || inst->literal >> 16;
	return !is_float && operand >= 240;
}

int sim_gcn_check_operands(const struct sim_gcn_inst *inst, bool vector)
{
	bool scalar = inst->dst < SIM_GCN_VGPR0;
	u32 i;

	if (inst->width[0] && !sim_gcn_is_operand(inst->dst, inst->width[0], !scalar, true))
		return -EINVAL;
	for (i = 0; i < 3; i++)
		if (inst->width[i + 1] &&
		    (!sim_gcn_is_operand(inst->src[i], inst->width[i + 1], vector, false) ||
		     is_doubtful_constant(inst, inst->src[i], inst->width[i + 1])))
			return -EINVAL;
	return 0;
}

/* A constant of 32 bits may follow an instruction of 32 bits. */
int sim_gcn_take_literal(struct sim_gcn_inst *inst, u32 available)
{
	u32 i;

	for (i = 0; i < 2; i++)
		if (inst->width[i + 1] && inst->src[i] == SIM_GCN_LITERAL)
			inst->bytes = 8;
	if (inst->bytes == 4)
		return 0;
	inst->literal = inst->words[1];
	return available < 2 ? -EINVAL : 0;
}

static int decode_scalar(struct sim_gcn_inst *inst, u32 available)
{
	u32 in = inst->words[0], op;
	int ret;

	inst->dst = in >> 16 & 0x7f;
	inst->src[0] = in & 0xff;
	inst->src[1] = in >> 8 & 0xff;
	if (in >> 23 == 0x17d) {
		inst->format = SIM_GCN_SOP1, op = in >> 8 & 0xff;
		inst->src[1] = 0;
	} else if (in >> 23 == 0x17e) {
		inst->format = SIM_GCN_SOPC, op = in >> 16 & 0x7f;
	} else if (in >> 23 == 0x17f) {
		inst->format = SIM_GCN_SOPP, op = in >> 16 & 0x7f;
		inst->offset = (s32)(in << 16) >> 16;
	} else if (in >> 28 == 0xb) {
		inst->format = SIM_GCN_SOPK, op = in >> 23 & 0x1f;
		inst->offset = (s32)(in << 16) >> 16;
	} else {
		inst->format = SIM_GCN_SOP2, op = in >> 23 & 0x7f;
	}
	ret = sim_gcn_take_row(inst, inst->format, op);
	if (ret == 0 && inst->format == SIM_GCN_SOPP && !(inst->flags & SIM_GCN_IMMEDIATE) &&
	    in & 0xffff)
		ret = -EINVAL;
	if (ret == 0 && inst->format == SIM_GCN_SOP1 &&
	    ((!inst->width[0] && inst->dst) || (!inst->width[1] && inst->src[0])))
		ret = -EINVAL;
	if (inst->op == SIM_GCN_s_getreg_b32 && (in & 0x3f) != SIM_GCN_HW_ID)
		ret = -EINVAL;
	if ((inst->op == SIM_GCN_s_setpc_b64 || inst->op == SIM_GCN_s_swappc_b64) &&
	    inst->src[0] >= SIM_GCN_ZERO)
		ret = -EINVAL;
	if (ret == 0)
		ret = sim_gcn_take_literal(inst, available);
	return ret < 0 ? ret : sim_gcn_check_operands(inst, false);
}

static int decode_smem(struct sim_gcn_inst *inst)
{
	u32 in = inst->words[0], at = inst->words[1];
	int ret = sim_gcn_take_row(inst, SIM_GCN_SMEM, in >> 18 & 0xff);

	inst->bytes = 8;
	inst->format = SIM_GCN_SMEM;
	inst->src[0] = (in & 0x3f) * 2;
	inst->dst = in >> 6 & 0x7f;
	inst->glc = in >> 16 & 1;
	inst->saddr = NO_SGPR;
	if (ret < 0 || in >> 14 & 3 || in & 1u << 13)
		return -EINVAL;
	if (!inst->width[1])
		return at || inst->glc || in >> 17 & 1 || in & 0x3f ||
				       (!inst->width[0] && inst->dst)
			       ? -EINVAL
			       : sim_gcn_check_operands(inst, false);
	if (in >> 17 & 1) {
		inst->offset = (s32)(at << 11) >> 11;
		if (at >> 21)
			return -EINVAL;
	} else {
		inst->saddr = at & 0x7f;
		if (at >> 7 || !sim_gcn_is_operand(inst->saddr, 1, false, true))
			return -EINVAL;
	}
	return sim_gcn_check_operands(inst, false);
}

/* The values of memory instructions are in accumulation registers. */
static void use_accumulators(struct sim_gcn_inst *inst)
{
	u32 distance = SIM_GCN_ACC0 - SIM_GCN_VGPR0;

	inst->dst += inst->width[0] ? distance : 0;
	inst->src[1] += inst->width[2] ? distance : 0;
	inst->src[2] += inst->width[3] ? distance : 0;
}

static int decode_ds(struct sim_gcn_inst *inst)
{
	u32 in = inst->words[0], dw = inst->words[1];
	int ret = sim_gcn_take_row(inst, SIM_GCN_DS, in >> 17 & 0xff);

	inst->bytes = 8;
	inst->format = SIM_GCN_DS;
	inst->offset = (s32)(in & 0xffff);
	inst->src[0] = SIM_GCN_VGPR0 + (dw & 0xff);
	inst->src[1] = SIM_GCN_VGPR0 + (dw >> 8 & 0xff);
	inst->src[2] = SIM_GCN_VGPR0 + (dw >> 16 & 0xff);
	inst->dst = SIM_GCN_VGPR0 + (dw >> 24);
	if (ret < 0 || in >> 16 & 1)
		return -EINVAL;
	if (in >> 25 & 1)
		use_accumulators(inst);
	if ((!inst->width[2] && dw >> 8 & 0xff) || (!inst->width[3] && dw >> 16 & 0xff) ||
	    (!inst->width[0] && dw >> 24))
		return -EINVAL;
	return sim_gcn_check_operands(inst, true);
}

static int decode_flat(struct sim_gcn_inst *inst)
{
	u32 in = inst->words[0], dw = inst->words[1], segment = in >> 14 & 3;
	int ret = sim_gcn_take_row(inst, SIM_GCN_FLAT, in >> 18 & 0x7f);

	inst->bytes = 8;
	inst->format = SIM_GCN_FLAT;
	inst->global = segment == 2;
	inst->glc = in >> 16 & 1;
	inst->slc = in >> 17 & 1;
	inst->saddr = dw >> 16 & 0x7f;
	inst->offset = inst->global ? (s32)(in << 19) >> 19 : (s32)(in & 0xfff);
	inst->src[0] = SIM_GCN_VGPR0 + (dw & 0xff);
	inst->src[1] = SIM_GCN_VGPR0 + (dw >> 8 & 0xff);
	inst->dst = SIM_GCN_VGPR0 + (dw >> 24);
	/* the segment of private memory, LDS as target, scc */
	if (ret < 0 || segment & 1 || in >> 13 & 1 || in >> 25 & 1)
		return -EINVAL;
	if (dw >> 23 & 1)
		use_accumulators(inst);
	if (!inst->global && in >> 12 & 1)
		return -EINVAL;
	if (inst->global && inst->saddr != NO_SGPR) {
		inst->width[1] = 1;
		if (!sim_gcn_is_operand(inst->saddr, 2, false, true) || inst->saddr > SIM_GCN_VCC)
			return -EINVAL;
	} else if (!inst->global && inst->saddr) {
		return -EINVAL;
	}
	if (inst->flags & SIM_GCN_ATOMIC && !inst->glc)
		inst->width[0] = 0;
	if ((!inst->width[0] && dw >> 24) || (!inst->width[2] && dw >> 8 & 0xff))
		return -EINVAL;
	return sim_gcn_check_operands(inst, true);
}

/* LLVM 14 knows buffer_wbl2 without glc and scc only, and later compilers set them. */
static int decode_cache(struct sim_gcn_inst *inst)
{
	u32 in = inst->words[0], bits = inst->op == SIM_GCN_buffer_wbl2 ? 3u << 14 : 0;

	inst->glc = in >> 14 & 1;
	inst->scc = in >> 15 & 1;
	return in & 0x3ffff & ~bits || in >> 25 & 1 || inst->words[1] ? -EINVAL : 0;
}

/* Buffers of private memory: a VGPR with an offset, or none, and four SGPRs. */
static int decode_mubuf(struct sim_gcn_inst *inst)
{
	u32 in = inst->words[0], dw = inst->words[1], code = in >> 18 & 0x7f;
	u32 load = SIM_GCN_LOAD | SIM_GCN_STORE;

	inst->bytes = 8;
	inst->format = SIM_GCN_MUBUF;
	if (sim_gcn_take_row(inst, SIM_GCN_MUBUF, code) == 0)
		return decode_cache(inst);
	if (sim_gcn_take_row(inst, SIM_GCN_FLAT, code) < 0 || !(inst->flags & load))
		return -EINVAL;
	inst->offset = (s32)(in & 0xfff);
	inst->width[1] = in >> 12 & 1;
	inst->glc = in >> 14 & 1;
	inst->slc = in >> 17 & 1;
	inst->src[0] = SIM_GCN_VGPR0 + (dw & 0xff);
	inst->src[1] = inst->dst = SIM_GCN_VGPR0 + (dw >> 8 & 0xff);
	inst->saddr = (dw >> 16 & 0x1f) * 4;
	inst->soffset = dw >> 24;
	if (dw >> 23 & 1)
		use_accumulators(inst);
	/* an index, scc, LDS as target */
	if (in >> 13 & 1 || in >> 15 & 3 || in >> 25 & 1 || dw >> 21 & 3 ||
	    (!inst->width[1] && dw & 0xff))
		return -EINVAL;
	if (!sim_gcn_is_operand(inst->saddr, 4, false, true) || inst->soffset == SIM_GCN_LITERAL ||
	    !sim_gcn_is_operand(inst->soffset, 1, false, false))
		return -EINVAL;
	return sim_gcn_check_operands(inst, true);
}

int sim_gcn_decode(const u32 *words, u32 available, struct sim_gcn_inst *ret_inst)
{
	struct sim_gcn_inst inst = { .bytes = 4 };
	u32 in = words[0];
	int ret = -EINVAL;

	inst.words[0] = in;
	inst.words[1] = available > 1 ? words[1] : 0;
	if (!(in >> 31))
		ret = sim_gcn_decode_short(&inst, available);
	else if (in >> 30 == 2)
		ret = decode_scalar(&inst, available);
	else if (available < 2)
		return -EINVAL;
	else if (in >> 26 == 0x30)
		ret = decode_smem(&inst);
	else if (in >> 26 == 0x34)
		ret = sim_gcn_decode_long(&inst);
	else if (in >> 26 == 0x36)
		ret = decode_ds(&inst);
	else if (in >> 26 == 0x37)
		ret = decode_flat(&inst);
	else if (in >> 26 == 0x38)
		ret = decode_mubuf(&inst);
	*ret_inst = inst;
	return ret;
}
