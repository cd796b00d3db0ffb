// SPDX-License-Identifier: GPL-2.0-only
/* Decodes vector instructions: the short forms with their extensions, which take parts of registers
 * (SDWA) or values of other lanes (DPP), and the long forms. */
#include "gcn_decode.h"

#define PACKED 0x380u /* codes of VOP3 from here on: VOP3P */

/* Codes are in groups for types: 0x10 classes of floats, 0x20 f16, 0x40 f32, 0x60 f64, 0xa0 16
 * bits, 0xc0 32 bits, 0xe0 64 bits. */
static int take_compare(struct sim_gcn_inst *inst, u32 code)
{
	bool is_class = code >= 0x10 && code < 0x16, is_float = is_class || (code & 0x80) == 0;
	bool is_half = is_class ? code >= 0x14 : (code & 0x60) == 0x20;
	bool is_wide = is_class ? code >> 1 == 9 : (code & 0x60) == 0x60;

	if ((code < 0x20 && !is_class) || (code & 0xe0) == 0x80)
		return -EINVAL;
	inst->op = SIM_GCN_v_cmp;
	inst->compare = code;
	inst->flags = (is_float ? SIM_GCN_FLOAT : 0) | (is_half ? SIM_GCN_HALF : 0) |
		      (is_class ? SIM_GCN_LAST_INT : 0) |
		      ((is_class ? code & 1 : code & 0x10) ? SIM_GCN_TO_EXEC : 0);
	inst->width[0] = 2;
	inst->width[1] = is_wide ? 2 : 1;
	inst->width[2] = is_wide && !is_class ? 2 : 1;
	return 0;
}

/* A constant of 32 bits is the middle source of v_madmk_f32, and the last one of v_madak_f32. */
static int take_fixed_literal(struct sim_gcn_inst *inst, u32 available)
{
	bool is_last = inst->op == SIM_GCN_v_madak_f32;

	if (inst->src[0] == SIM_GCN_LITERAL || available < 2)
		return -EINVAL;
	inst->src[2] = is_last ? SIM_GCN_LITERAL : inst->src[1];
	inst->src[1] = is_last ? inst->src[1] : SIM_GCN_LITERAL;
	inst->literal = inst->words[1];
	inst->bytes = 8;
	return sim_gcn_check_operands(inst, true);
}

/* Rows whose lanes may take parts of registers, or values of other lanes. */
static bool can_be_extended(const struct sim_gcn_inst *inst)
{
	const u32 others = SIM_GCN_CARRY_IN | SIM_GCN_CARRY_OUT | SIM_GCN_ACCUMULATES |
			   SIM_GCN_HAS_LITERAL | SIM_GCN_TO_SCALAR | SIM_GCN_PLAIN;
	u32 i;

	for (i = inst->format == SIM_GCN_VOPC; i < 3; i++)
		if (inst->width[i] > 1)
			return false;
	return !(inst->flags & others) && inst->op != SIM_GCN_v_nop;
}

/* A source of SDWA has 8 bits: which part, whether it is a signed number, and the signs. */
static int take_part(struct sim_gcn_inst *inst, u32 i, u32 field, bool scalar)
{
	inst->src[i] = (inst->src[i] & 0xff) + (scalar ? 0 : SIM_GCN_VGPR0);
	inst->part[i] = field & 7;
	inst->sext |= (field >> 3 & 1) << i;
	inst->neg |= (field >> 4 & 1) << i;
	inst->abs |= (field >> 5 & 1) << i;
	if (!inst->width[i + 1])
		return field || scalar ? -EINVAL : 0;
	if (inst->part[i] > SIM_GCN_DWORD || field >> 6 & 1 ||
	    (scalar && inst->src[i] >= SIM_GCN_ZERO))
		return -EINVAL;
	return 0;
}

/* A number is signed, or a float has signs. */
static int check_part_signs(const struct sim_gcn_inst *inst)
{
	bool is_float = inst->flags & SIM_GCN_FLOAT && !(inst->flags & SIM_GCN_FROM_INT);
	u32 ints = is_float ? (inst->flags & SIM_GCN_LAST_INT ? 2u : 0) : 3u;

	return inst->sext & ~ints || (inst->neg | inst->abs) & ints ? -EINVAL : 0;
}

static int take_sdwa(struct sim_gcn_inst *inst)
{
	u32 dw = inst->words[1];
	int ret;

	inst->src[0] = dw & 0xff;
	ret = take_part(inst, 0, dw >> 16 & 0x7f, dw >> 23 & 1);
	if (ret == 0)
		ret = take_part(inst, 1, dw >> 24 & 0x7f, dw >> 31);
	if (ret < 0 || check_part_signs(inst) < 0)
		return -EINVAL;
	if (inst->format == SIM_GCN_VOPC) {
		inst->dst = dw >> 15 & 1 ? dw >> 8 & 0x7f : SIM_GCN_VCC;
		return dw >> 8 & 0x7f && !(dw >> 15 & 1) ? -EINVAL : 0;
	}
	inst->dst_part = dw >> 8 & 7;
	inst->dst_rest = dw >> 11 & 3;
	return inst->dst_part > SIM_GCN_DWORD || inst->dst_rest > SIM_GCN_REST_KEPT || dw >> 13 & 7
		       ? -EINVAL
		       : 0;
}

static bool is_dpp_control(u32 control)
{
	if (control < 0x100)
		return true;
	if (control < 0x130)
		return control % 16 != 0;
	return control == 0x130 || control == 0x134 || control == 0x138 || control == 0x13c ||
	       (control >= 0x140 && control <= 0x143);
}

static int take_dpp(struct sim_gcn_inst *inst)
{
	u32 dw = inst->words[1];

	inst->src[0] = SIM_GCN_VGPR0 + (dw & 0xff);
	inst->dpp = dw >> 8 & 0x1ff;
	inst->bound = dw >> 19 & 1;
	inst->neg = (dw >> 20 & 1) | (dw >> 22 & 1) << 1;
	inst->abs = (dw >> 21 & 1) | (dw >> 23 & 1) << 1;
	inst->banks = dw >> 24 & 15;
	inst->rows = dw >> 28;
	if (!inst->width[2] && (inst->neg | inst->abs) & 2)
		return -EINVAL;
	if (inst->neg | inst->abs &&
	    (!(inst->flags & SIM_GCN_FLOAT) || inst->flags & (SIM_GCN_FROM_INT | SIM_GCN_LAST_INT)))
		return -EINVAL;
	return is_dpp_control(inst->dpp) && !(dw >> 17 & 3) ? 0 : -EINVAL;
}

static int take_extension(struct sim_gcn_inst *inst, u32 available)
{
	int ret = -EINVAL;

	inst->extension = inst->src[0];
	inst->bytes = 8;
	if (available < 2 || !can_be_extended(inst))
		return -EINVAL;
	if (inst->extension == SIM_GCN_SDWA)
		ret = take_sdwa(inst);
	else if (inst->format != SIM_GCN_VOPC)
		ret = take_dpp(inst);
	return ret < 0 ? ret : sim_gcn_check_operands(inst, true);
}

int sim_gcn_decode_short(struct sim_gcn_inst *inst, u32 available)
{
	u32 in = inst->words[0];
	int ret;

	inst->src[0] = in & 0x1ff;
	inst->dst = SIM_GCN_VGPR0 + (in >> 17 & 0xff);
	inst->src[1] = SIM_GCN_VGPR0 + (in >> 9 & 0xff);
	if (in >> 25 == 0x3f) {
		inst->format = SIM_GCN_VOP1;
		ret = sim_gcn_take_row(inst, SIM_GCN_VOP1, in >> 9 & 0xff);
		inst->src[1] = 0;
	} else if (in >> 25 == 0x3e) {
		inst->format = SIM_GCN_VOPC;
		ret = take_compare(inst, in >> 17 & 0xff);
		inst->dst = SIM_GCN_VCC;
	} else {
		inst->format = SIM_GCN_VOP2;
		ret = sim_gcn_take_row(inst, SIM_GCN_VOP2, in >> 25);
	}
	if (ret < 0 || (inst->op == SIM_GCN_v_nop && in & 0x01fe01ff))
		return -EINVAL;
	if (inst->flags & SIM_GCN_TO_SCALAR)
		inst->dst -= SIM_GCN_VGPR0;
	if (inst->op == SIM_GCN_v_accvgpr_mov_b32)
		inst->dst += SIM_GCN_ACC0 - SIM_GCN_VGPR0;
	if ((inst->flags & SIM_GCN_TO_SCALAR || inst->op == SIM_GCN_v_accvgpr_mov_b32 ||
	     inst->op == SIM_GCN_v_swap_b32) &&
	    inst->src[0] < SIM_GCN_VGPR0)
		return -EINVAL;
	if (inst->op == SIM_GCN_v_accvgpr_mov_b32)
		inst->src[0] += SIM_GCN_ACC0 - SIM_GCN_VGPR0;
	inst->sdst = inst->src[2] = SIM_GCN_VCC;
	if (inst->src[0] == SIM_GCN_SDWA || inst->src[0] == SIM_GCN_DPP)
		return take_extension(inst, available);
	if (inst->flags & SIM_GCN_HAS_LITERAL)
		return take_fixed_literal(inst, available);
	ret = sim_gcn_take_literal(inst, available);
	return ret < 0 ? ret : sim_gcn_check_operands(inst, true);
}

/* The long form: all operands and masks, signs, but no literal. */
static int take_vop3_row(struct sim_gcn_inst *inst, u32 op)
{
	if (op < 0x100)
		return take_compare(inst, op);
	if (op < 0x140)
		return sim_gcn_take_row(inst, SIM_GCN_VOP2, op - 0x100);
	if (op < 0x180)
		return sim_gcn_take_row(inst, SIM_GCN_VOP1, op - 0x140);
	return sim_gcn_take_row(inst, SIM_GCN_VOP3, op);
}

static int check_signs(const struct sim_gcn_inst *inst)
{
	u32 used =
		(inst->width[1] ? 1u : 0) | (inst->width[2] ? 2u : 0) | (inst->width[3] ? 4u : 0);

	if (inst->flags & SIM_GCN_LAST_INT)
		used = 1;
	if (!(inst->neg | inst->abs))
		return 0;
	if (!(inst->flags & (SIM_GCN_FLOAT | SIM_GCN_SIGNS)) || inst->flags & SIM_GCN_FROM_INT)
		return -EINVAL;
	return (inst->neg | inst->abs) & ~used ? -EINVAL : 0;
}

/* An instruction may read only one SGPR operand, because the hardware has one bus for them. */
static int check_bus(const struct sim_gcn_inst *inst)
{
	u32 i, seen = ~0u;

	for (i = 0; i < 3; i++) {
		bool used = inst->width[i + 1] || (i == 2 && inst->flags & SIM_GCN_CARRY_IN);

		if (!used || inst->src[i] >= SIM_GCN_ZERO)
			continue;
		if (seen != ~0u && seen != inst->src[i])
			return -EINVAL;
		seen = inst->src[i];
	}
	return 0;
}

/* Between one lane and SGPRs: the number of the lane is scalar. */
static int check_across(const struct sim_gcn_inst *inst)
{
	if (inst->op != SIM_GCN_v_readlane_b32 && inst->op != SIM_GCN_v_writelane_b32)
		return 0;
	if (inst->src[1] >= SIM_GCN_VGPR0)
		return -EINVAL;
	return (inst->op == SIM_GCN_v_readlane_b32) == (inst->src[0] >= SIM_GCN_VGPR0) ? 0
										       : -EINVAL;
}

/* Which halves a constant means is only known for low halves of 32 bits, and for low halves of
 * integers. v_pk_mov_b32 takes one half of a source. */
static int check_packed_constants(const struct sim_gcn_inst *inst)
{
	bool is_wide = inst->flags & (SIM_GCN_PACKED_WIDE | SIM_GCN_MIXED);
	u32 high = inst->select | (inst->op == SIM_GCN_v_pk_mov_b32 ? 0 : inst->select_high), i;
	u32 last = is_wide ? SIM_GCN_LITERAL - 1u : inst->flags & SIM_GCN_FLOAT ? 0 : 208u;

	for (i = 0; i < 3; i++)
		if (inst->width[i + 1] && inst->src[i] >= SIM_GCN_ZERO &&
		    inst->src[i] < SIM_GCN_VGPR0 && (inst->src[i] > last || high >> i & 1))
			return -EINVAL;
	return 0;
}

/* Packed instructions (VOP3P) have fields for halves, and for the signs of both. */
static int take_packed(struct sim_gcn_inst *inst)
{
	const u32 packed = SIM_GCN_PACKED_HALF | SIM_GCN_PACKED_WIDE | SIM_GCN_MIXED;
	u32 in = inst->words[0], dw = inst->words[1], all = inst->width[3] ? 7 : 3;

	inst->select = in >> 11 & 7;
	inst->select_high = (dw >> 27 & 3) | (in >> 14 & 1) << 2;
	inst->neg = dw >> 29;
	inst->neg_high = in >> 8 & 7;
	if (in >> 15 & 1)
		return -EINVAL;
	if (!inst->width[3] && (dw >> 18 & 0x1ff || !(inst->select_high & 4)))
		return -EINVAL;
	if ((inst->select | inst->neg | inst->neg_high) & ~all)
		return -EINVAL;
	if (!(inst->flags & SIM_GCN_FLOAT) && inst->neg | inst->neg_high)
		return -EINVAL;
	/* what halves mean for dot products, and the high ones for v_pk_mov_b32, is not known */
	if (!(inst->flags & packed) && (inst->select || inst->neg | inst->neg_high))
		return -EINVAL;
	if ((!(inst->flags & packed) || inst->op == SIM_GCN_v_pk_mov_b32) && inst->select_high != 7)
		return -EINVAL;
	return check_packed_constants(inst);
}

/* The first two sources are registers of either kind. The third and the result are of one kind. */
static int take_matrix(struct sim_gcn_inst *inst)
{
	const u32 distance = SIM_GCN_ACC0 - SIM_GCN_VGPR0;
	u32 in = inst->words[0], dw = inst->words[1];

	if (in >> 8 & 0x7f || dw >> 29 || inst->src[0] < SIM_GCN_VGPR0 ||
	    inst->src[1] < SIM_GCN_VGPR0 || inst->src[2] < SIM_GCN_ZERO)
		return -EINVAL;
	inst->src[0] += dw >> 27 & 1 ? distance : 0;
	inst->src[1] += dw >> 28 & 1 ? distance : 0;
	if (in >> 15 & 1) {
		inst->dst += distance;
		inst->src[2] += inst->src[2] >= SIM_GCN_VGPR0 ? distance : 0;
	}
	return 0;
}

/* A move between a VGPR, or a constant, and an accumulation register. */
static int take_move(struct sim_gcn_inst *inst)
{
	const u32 distance = SIM_GCN_ACC0 - SIM_GCN_VGPR0;
	bool is_read = inst->op == SIM_GCN_v_accvgpr_read_b32;

	if ((inst->words[0] >> 8 & 0xff) != 0x40 || inst->words[1] >> 9 != 3u << 18)
		return -EINVAL;
	if (is_read && inst->src[0] < SIM_GCN_VGPR0)
		return -EINVAL;
	if (inst->src[0] == SIM_GCN_LITERAL)
		return -EINVAL;
	inst->src[0] += is_read ? distance : 0;
	inst->dst += is_read ? 0 : distance;
	return 0;
}

static int check_vop3(const struct sim_gcn_inst *inst)
{
	u32 dw = inst->words[1], i;

	/* omod; results can be clamped that are floats of 32 bits, and v_sub_u32 */
	if (dw >> 27 & 3 || (inst->clamp && !(inst->flags & SIM_GCN_CLAMPS)))
		return -EINVAL;
	for (i = 0; i < 3; i++)
		if ((inst->width[i + 1] && inst->src[i] == SIM_GCN_LITERAL) ||
		    (!inst->width[i + 1] && dw >> 9 * i & 0x1ff &&
		     !(i == 2 && inst->flags & SIM_GCN_CARRY_IN)))
			return -EINVAL;
	if (inst->flags & SIM_GCN_CARRY_IN && !sim_gcn_is_operand(inst->src[2], 2, false, true))
		return -EINVAL;
	if (inst->flags & SIM_GCN_CARRY_OUT && !sim_gcn_is_operand(inst->sdst, 2, false, true))
		return -EINVAL;
	return check_signs(inst);
}

static int take_signs(struct sim_gcn_inst *inst)
{
	u32 in = inst->words[0];

	inst->neg = inst->words[1] >> 29;
	inst->clamp = in >> 15 & 1;
	if (inst->flags & SIM_GCN_CARRY_OUT) {
		inst->sdst = in >> 8 & 0x7f;
		return 0;
	}
	inst->abs = in >> 8 & 7;
	return in >> 11 & 0xf ? -EINVAL : 0;
}

int sim_gcn_decode_long(struct sim_gcn_inst *inst)
{
	u32 in = inst->words[0], dw = inst->words[1], op = in >> 16 & 0x3ff;
	int ret = take_vop3_row(inst, op);

	if (ret < 0 || inst->op == SIM_GCN_v_readfirstlane_b32 || inst->op == SIM_GCN_v_nop ||
	    inst->flags & (SIM_GCN_HAS_LITERAL | SIM_GCN_PLAIN))
		return -EINVAL;
	inst->bytes = 8;
	inst->format = SIM_GCN_VOP3;
	inst->src[0] = dw & 0x1ff;
	inst->src[1] = dw >> 9 & 0x1ff;
	inst->src[2] = dw >> 18 & 0x1ff;
	inst->dst = in & 0xff;
	if (inst->op != SIM_GCN_v_cmp && !(inst->flags & SIM_GCN_TO_SCALAR))
		inst->dst += SIM_GCN_VGPR0;
	else if (inst->dst >= 128)
		return -EINVAL;
	if (inst->flags & SIM_GCN_MATRIX) {
		ret = take_matrix(inst);
	} else if (inst->op == SIM_GCN_v_accvgpr_read_b32 ||
		   inst->op == SIM_GCN_v_accvgpr_write_b32) {
		ret = take_move(inst);
	} else if (op >= PACKED) {
		ret = take_packed(inst);
	} else {
		ret = take_signs(inst);
		if (ret == 0)
			ret = check_vop3(inst);
	}
	if (ret == 0)
		ret = check_across(inst);
	if (ret == 0)
		ret = sim_gcn_check_operands(inst, true);
	return ret < 0 ? ret : check_bus(inst);
}
