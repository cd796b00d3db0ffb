// SPDX-License-Identifier: GPL-2.0-only
/* Instructions as text in the notation of LLVM's disassembler, for messages and for tests that
 * compare. */
#include "gcn.h"

#define NO_SGPR 127u

struct text {
	char *to;
	u32 size, used;
	bool operands; /* there is one already */
};

static void put(struct text *text, const char *format, ...)
{
	u32 room = text->size - text->used;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->to + text->used, room, format, arguments);
	va_end(arguments);
	text->used += min((u32)max(length, 0), room - 1);
}

static void put_registers(struct text *text, const char *prefix, u32 first, u32 width)
{
	if (width < 2)
		put(text, "%s%u", prefix, first);
	else
		put(text, "%s[%u:%u]", prefix, first, first + width - 1);
}

/* LLVM writes a literal as the constant of the same value, if there is one and the instruction
 * could do without the literal. A literal of 64 bits is compared as an unsigned integer. */
static u32 find_constant(const struct sim_gcn_inst *inst, u32 operand, u32 width)
{
	bool is_half = inst->flags & SIM_GCN_HALF;
	u32 last = width == 2 ? 192 : is_half ? 208 : 248, mask = is_half ? 0xffff : ~0u, i;

	if (operand != SIM_GCN_LITERAL || inst->flags & SIM_GCN_HAS_LITERAL)
		return operand;
	for (i = SIM_GCN_ZERO; i <= last; i++)
		if ((i <= 208 || i >= 240) &&
		    ((u32)sim_gcn_constant(inst, i, 1) & mask) == inst->literal)
			return i;
	return operand;
}

static void put_constant(struct text *text, const struct sim_gcn_inst *inst, u32 operand, u32 width)
{
	static const char *const floats[] = { "0.5",  "-0.5", "1.0",  "-1.0",      "2.0",
					      "-2.0", "4.0",  "-4.0", "0.15915494" };

	operand = find_constant(inst, operand, width);
	if (operand == SIM_GCN_LITERAL)
		put(text, "0x%x", inst->literal);
	else if (operand < 240)
		put(text, "%d", (s32)sim_gcn_constant(inst, operand, 1));
	else
		put(text, "%s%s", floats[operand - 240],
		    operand == 248 && width == 2 ? "309189532" : "");
}

static void put_special(struct text *text, u32 operand, u32 width)
{
	static const char *const halves[] = { "_lo", "_hi" };
	const char *name = operand < SIM_GCN_VCC ? "flat_scratch" : "vcc";

	if (operand == SIM_GCN_M0)
		put(text, "m0");
	else
		put(text, "%s%s", operand < SIM_GCN_EXEC ? name : "exec",
		    width == 2 ? "" : halves[operand % 2]);
}

static void put_operand(struct text *text, const struct sim_gcn_inst *inst, u32 operand, u32 width)
{
	put(text, text->operands ? ", " : " ");
	text->operands = true;
	if (operand >= SIM_GCN_ACC0)
		put_registers(text, "a", operand - SIM_GCN_ACC0, width);
	else if (operand >= SIM_GCN_VGPR0)
		put_registers(text, "v", operand - SIM_GCN_VGPR0, width);
	else if (operand == SIM_GCN_SHARED_BASE || operand == SIM_GCN_PRIVATE_BASE)
		put(text, operand == SIM_GCN_SHARED_BASE ? "src_shared_base" : "src_private_base");
	else if (operand < 102)
		put_registers(text, "s", operand, width);
	else if (operand >= SIM_GCN_ZERO)
		put_constant(text, inst, operand, width);
	else
		put_special(text, operand, width);
}

static void put_signed_operand(struct text *text, const struct sim_gcn_inst *inst, u32 i)
{
	char part[32];
	struct text plain = { .to = part, .size = sizeof(part) };
	bool abs = inst->abs >> i & 1, neg = inst->neg >> i & 1;

	if (inst->flags & SIM_GCN_MIXED)
		abs = inst->neg_high >> i & 1;
	else if (inst->flags & (SIM_GCN_PACKED_HALF | SIM_GCN_PACKED_WIDE))
		neg = false;
	put_operand(&plain, inst, inst->src[i], inst->width[i + 1]);
	put(text, text->operands ? ", " : " ");
	text->operands = true;
	if (inst->sext >> i & 1)
		put(text, "sext(%s)", part + 1);
	/* a minus in front of a constant could belong to the constant */
	else if (neg && !abs && inst->src[i] >= SIM_GCN_ZERO && inst->src[i] < SIM_GCN_VGPR0)
		put(text, "neg(%s)", part + 1);
	else
		put(text, "%s%s%s%s", neg ? "-" : "", abs ? "|" : "", part + 1, abs ? "|" : "");
}

/* A bit of each source, unless all are as usual. */
static void put_bits(struct text *text, const struct sim_gcn_inst *inst, const char *name, u32 bits,
		     u32 usual)
{
	u32 count = inst->width[3] ? 3 : 2, i;

	if (((bits ^ usual) & ((1u << count) - 1)) == 0)
		return;
	put(text, " %s:[", name);
	for (i = 0; i < count; i++)
		put(text, "%s%u", i ? "," : "", bits >> i & 1);
	put(text, "]");
}

static void put_packed(struct text *text, const struct sim_gcn_inst *inst)
{
	bool is_mixed = inst->flags & SIM_GCN_MIXED;

	put_bits(text, inst, "op_sel", inst->select, 0);
	put_bits(text, inst, "op_sel_hi", inst->select_high, is_mixed ? 0 : 7);
	if (is_mixed)
		return;
	put_bits(text, inst, "neg_lo", inst->neg, 0);
	put_bits(text, inst, "neg_hi", inst->neg_high, 0);
}

static void put_sdwa(struct text *text, const struct sim_gcn_inst *inst)
{
	static const char *const parts[] = { "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
					     "WORD_0", "WORD_1", "DWORD" };
	static const char *const rests[] = { "PAD", "SEXT", "PRESERVE" };
	u32 i;

	if (inst->format != SIM_GCN_VOPC)
		put(text, " dst_sel:%s dst_unused:UNUSED_%s", parts[inst->dst_part],
		    rests[inst->dst_rest]);
	for (i = 0; i < 2; i++)
		if (inst->width[i + 1])
			put(text, " src%u_sel:%s", i, parts[inst->part[i]]);
}

static void put_dpp(struct text *text, const struct sim_gcn_inst *inst)
{
	static const char *const shifts[] = { "row_shl", "row_shr", "row_ror" };
	static const char *const waves[] = { "wave_shl", "wave_rol", "wave_shr", "wave_ror" };
	static const char *const others[] = { "row_mirror", "row_half_mirror", "row_bcast:15",
					      "row_bcast:31" };
	u32 control = inst->dpp;

	if (control < 0x100)
		put(text, " quad_perm:[%u,%u,%u,%u]", control & 3, control >> 2 & 3,
		    control >> 4 & 3, control >> 6);
	else if (control < 0x130)
		put(text, " %s:%u", shifts[(control >> 4) - 0x10], control & 15);
	else if (control < 0x140)
		put(text, " %s:1", waves[control >> 2 & 3]);
	else
		put(text, " %s", others[control & 3]);
	put(text, " row_mask:0x%x bank_mask:0x%x%s", inst->rows, inst->banks,
	    inst->bound ? " bound_ctrl:1" : "");
}

static void put_waitcnt(struct text *text, u32 imm)
{
	u32 vm = (imm & 15) | (imm >> 14 & 3) << 4, exp = imm >> 4 & 7, lgkm = imm >> 8 & 15;
	bool all = vm == 63 && exp == 7 && lgkm == 15;

	if (vm != 63 || all)
		put(text, " vmcnt(%u)", vm);
	if (exp != 7 || all)
		put(text, " expcnt(%u)", exp);
	if (lgkm != 15 || all)
		put(text, " lgkmcnt(%u)", lgkm);
}

/* Bits of the register, all 32 if it says nothing. */
static void put_hardware_register(struct text *text, u32 imm)
{
	u32 offset = imm >> 6 & 31, size = (imm >> 11) + 1;

	put(text, ", hwreg(HW_REG_HW_ID");
	if (offset || size != 32)
		put(text, ", %u, %u", offset, size);
	put(text, ")");
}

static bool is_branch(const struct sim_gcn_inst *inst)
{
	return inst->op == SIM_GCN_s_branch ||
	       (inst->op >= SIM_GCN_s_cbranch_scc0 && inst->op <= SIM_GCN_s_cbranch_execnz);
}

static void put_scalar(struct text *text, const struct sim_gcn_inst *inst)
{
	u32 i;

	put(text, "%s", sim_gcn_rows[inst->op].name);
	if (inst->op == SIM_GCN_s_waitcnt) {
		put_waitcnt(text, inst->offset & 0xffff);
		return;
	}
	if (inst->flags & SIM_GCN_IMMEDIATE)
		put(text, is_branch(inst) || (inst->offset & 0xffff) <= 64 ? " %u" : " 0x%x",
		    inst->offset & 0xffff);
	if (inst->width[0])
		put_operand(text, inst, inst->dst, inst->width[0]);
	if (inst->op == SIM_GCN_s_getreg_b32)
		put_hardware_register(text, inst->offset & 0xffff);
	else if (inst->format == SIM_GCN_SOPK)
		put(text, ", 0x%x", inst->offset & 0xffff);
	for (i = 0; i < 2; i++)
		if (inst->width[i + 1])
			put_operand(text, inst, inst->src[i], inst->width[i + 1]);
}

static void put_hex(struct text *text, s32 value)
{
	put(text, ", %s0x%x", value < 0 ? "-" : "", value < 0 ? -value : value);
}

static void put_smem(struct text *text, const struct sim_gcn_inst *inst)
{
	put(text, "%s", sim_gcn_rows[inst->op].name);
	if (inst->width[0])
		put_operand(text, inst, inst->dst, inst->width[0]);
	if (!inst->width[1])
		return;
	put_operand(text, inst, inst->src[0], 2);
	if (inst->saddr == NO_SGPR)
		put_hex(text, inst->offset);
	else
		put_operand(text, inst, inst->saddr, 1);
	if (inst->glc)
		put(text, " glc");
}

static void put_compare(struct text *text, const struct sim_gcn_inst *inst)
{
	static const char *const ints[] = { "f", "lt", "eq", "le", "gt", "ne", "ge", "t" };
	static const char *const floats[] = {
		"f", "lt",  "eq",  "le",  "gt",  "lg",  "ge",  "o",
		"u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru"
	};
	static const char *const types[] = { "f16", "f32", "f64", "16", "32", "64" };
	static const char *const classes[] = { "f32", "f64", "f16" };
	u32 code = inst->compare;

	put(text, "v_cmp%s_", inst->flags & SIM_GCN_TO_EXEC ? "x" : "");
	if (code < 0x20)
		put(text, "class_%s", classes[(code & 15) >> 1]);
	else if (code < 0x80)
		put(text, "%s_%s", floats[code & 15], types[(code >> 5) - 1]);
	else
		put(text, "%s_%s%s", ints[code & 7], code & 8 ? "u" : "i", types[(code >> 5) - 2]);
}

/* Adds _e64 or _e32 to the names of instructions that have both forms. */
static void put_vector_name(struct text *text, const struct sim_gcn_inst *inst)
{
	const struct sim_gcn_row *row = &sim_gcn_rows[inst->op];

	if (inst->op == SIM_GCN_v_cmp)
		put_compare(text, inst);
	else
		put(text, "%s", row->name);
	if (inst->op == SIM_GCN_v_nop || inst->op == SIM_GCN_v_accvgpr_mov_b32 ||
	    inst->op == SIM_GCN_v_swap_b32 ||
	    inst->flags & (SIM_GCN_TO_SCALAR | SIM_GCN_HAS_LITERAL))
		return;
	if (inst->extension)
		put(text, inst->extension == SIM_GCN_SDWA ? "_sdwa" : "_dpp");
	else if (row->format != SIM_GCN_VOP3)
		put(text, inst->format == SIM_GCN_VOP3 ? "_e64" : "_e32");
}

static void put_vector(struct text *text, const struct sim_gcn_inst *inst)
{
	u32 i;

	put_vector_name(text, inst);
	if (inst->width[0])
		put_operand(text, inst, inst->dst, inst->width[0]);
	if (inst->flags & SIM_GCN_CARRY_OUT)
		put_operand(text, inst, inst->sdst, 2);
	for (i = 0; i < 3; i++)
		if (inst->width[i + 1])
			put_signed_operand(text, inst, i);
	if (inst->flags & SIM_GCN_CARRY_IN)
		put_operand(text, inst, inst->src[2], 2);
	if (inst->words[0] >> 23 == 0x1a7 && inst->width[2] && !(inst->flags & SIM_GCN_MATRIX))
		put_packed(text, inst);
	if (inst->clamp)
		put(text, " clamp");
	if (inst->extension == SIM_GCN_SDWA)
		put_sdwa(text, inst);
	else if (inst->extension)
		put_dpp(text, inst);
}

static void put_ds(struct text *text, const struct sim_gcn_inst *inst)
{
	u32 i;

	put(text, "%s", sim_gcn_rows[inst->op].name);
	if (inst->width[0])
		put_operand(text, inst, inst->dst, inst->width[0]);
	for (i = 0; i < 3; i++)
		if (inst->width[i + 1])
			put_operand(text, inst, inst->src[i], inst->width[i + 1]);
	if (!(inst->flags & SIM_GCN_PAIR)) {
		if (inst->offset)
			put(text, " offset:%d", inst->offset);
		return;
	}
	if (inst->offset & 0xff)
		put(text, " offset0:%d", inst->offset & 0xff);
	if (inst->offset >> 8)
		put(text, " offset1:%d", inst->offset >> 8);
}

static void put_flat(struct text *text, const struct sim_gcn_inst *inst)
{
	put(text, "%s%s", inst->global ? "global_" : "flat_", sim_gcn_rows[inst->op].name);
	if (inst->width[0])
		put_operand(text, inst, inst->dst, inst->width[0]);
	put_operand(text, inst, inst->src[0], inst->width[1]);
	if (inst->width[2])
		put_operand(text, inst, inst->src[1], inst->width[2]);
	if (inst->global && inst->saddr == NO_SGPR)
		put(text, ", off");
	else if (inst->global)
		put_operand(text, inst, inst->saddr, 2);
	if (inst->offset)
		put(text, " offset:%d", inst->offset);
	put(text, "%s%s", inst->glc ? " glc" : "", inst->slc ? " slc" : "");
}

static void put_mubuf(struct text *text, const struct sim_gcn_inst *inst)
{
	const struct sim_gcn_row *row = &sim_gcn_rows[inst->op];

	if (row->format == SIM_GCN_MUBUF) {
		put(text, "%s%s%s", row->name, inst->glc ? " glc" : "", inst->scc ? " scc" : "");
		return;
	}
	put(text, "buffer_%s", row->name);
	put_operand(text, inst, inst->width[0] ? inst->dst : inst->src[1],
		    inst->width[0] ? inst->width[0] : inst->width[2]);
	if (inst->width[1])
		put_operand(text, inst, inst->src[0], 1);
	else
		put(text, ", off");
	put_operand(text, inst, inst->saddr, 4);
	put_operand(text, inst, inst->soffset, 1);
	put(text, "%s", inst->width[1] ? " offen" : "");
	if (inst->offset)
		put(text, " offset:%d", inst->offset);
	put(text, "%s%s", inst->glc ? " glc" : "", inst->slc ? " slc" : "");
}

void sim_gcn_text(const struct sim_gcn_inst *inst, char *to, u32 size)
{
	struct text text = { .to = to, .size = size };

	switch (inst->format) {
	case SIM_GCN_SMEM:
		put_smem(&text, inst);
		break;
	case SIM_GCN_DS:
		put_ds(&text, inst);
		break;
	case SIM_GCN_FLAT:
		put_flat(&text, inst);
		break;
	case SIM_GCN_MUBUF:
		put_mubuf(&text, inst);
		break;
	case SIM_GCN_VOP1:
	case SIM_GCN_VOP2:
	case SIM_GCN_VOP3:
	case SIM_GCN_VOPC:
		put_vector(&text, inst);
		break;
	default:
		put_scalar(&text, inst);
	}
}
