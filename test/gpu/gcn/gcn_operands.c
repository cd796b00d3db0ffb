// SPDX-License-Identifier: GPL-2.0-only
/* Sources of vector instructions: registers, scalars in all lanes, and what the instruction changes
 * of them: signs, parts (SDWA), other lanes (DPP) and halves. */
#include "gcn_floats.h"
#include "gcn_ints.h"

u64 sim_gcn_operand(const struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst, u32 i,
		    u32 lane)
{
	u32 operand = inst->src[i], width = inst->width[i + 1];
	u64 value;

	if (!width)
		return 0;
	if (operand < SIM_GCN_ZERO)
		return width == 2 ? sim_gcn_pair(wave, operand) : wave->s[operand];
	if (operand < SIM_GCN_VGPR0)
		/* halves of 32 bits have constants of 32 bits */
		return sim_gcn_constant(inst, operand,
					inst->flags & SIM_GCN_PACKED_WIDE ? 1 : width);
	value = wave->v[operand - SIM_GCN_VGPR0][lane];
	if (width == 2)
		value |= (u64)wave->v[operand - SIM_GCN_VGPR0 + 1][lane] << 32;
	return value;
}

/* The same value in all lanes. */
static const u32 *spread_value(u32 *to, u32 value)
{
	u32 lane;

	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		to[lane] = value;
	return to;
}

/* Takes the sign of source @i away, or turns it. The sign is in the last dword. */
static void apply_signs(struct sim_gcn_operands *o, const struct sim_gcn_inst *inst, u32 i)
{
	bool abs = inst->abs >> i & 1, neg = inst->neg >> i & 1;
	u32 last = inst->width[i + 1] - 1, sign = inst->flags & SIM_GCN_HALF ? 1u << 15 : 1u << 31;
	u32 lane;
	const u32 *from = o->lanes.src[i][last];
	u32 *to = o->copies[i][last];

	if (!abs && !neg)
		return;
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		to[lane] = (abs ? from[lane] & ~sign : from[lane]) ^ (neg ? sign : 0);
	o->lanes.src[i][last] = to;
}

u32 sim_gcn_part_shift(u32 part)
{
	return part < SIM_GCN_WORD0 ? 8 * part : part == SIM_GCN_WORD1 ? 16 : 0;
}

/* SDWA: the part of the register becomes the low bits of the operand. */
static void take_part(struct sim_gcn_operands *o, const struct sim_gcn_inst *inst, u32 i)
{
	u32 part = inst->part[i], above = part < SIM_GCN_WORD0 ? 24 : 16, lane;
	u32 shift = sim_gcn_part_shift(part);
	const u32 *from = o->lanes.src[i][0];
	u32 *to = o->copies[i][0];

	if (part == SIM_GCN_DWORD)
		return;
	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		u32 high = from[lane] >> shift << above;

		to[lane] = inst->sext >> i & 1 ? (u32)((s32)high >> above) : high >> above;
	}
	o->lanes.src[i][0] = to;
}

/* The lane of the wave that DPP names for @lane. Returns -1 if that is outside the row or the
 * wave. */
static s32 dpp_lane(u32 control, s32 lane)
{
	s32 row = lane & ~15, shift = (s32)control & 15, at;

	if (control < 0x100)
		return (lane & ~3) + (s32)(control >> 2 * (lane & 3) & 3);
	switch (control & ~15u) {
	case 0x100:
		return lane - row + shift < 16 ? lane + shift : -1;
	case 0x110:
		return lane - shift >= row ? lane - shift : -1;
	case 0x120:
		return row + ((lane - shift) & 15);
	case 0x130:
		at = lane + (control < 0x138 ? 1 : -1);
		return control & 4 ? at & 63 : at < 64 ? at : -1;
	default:
		break;
	}
	if (control == 0x140)
		return row + 15 - (lane & 15);
	if (control == 0x141)
		return (lane & ~7) + 7 - (lane & 7);
	return control == 0x142 ? row - 1 : lane >= 32 ? 31 : -1;
}

s32 sim_gcn_dpp_source(const struct sim_gcn_inst *inst, u32 lane, u64 exec)
{
	s32 from = dpp_lane(inst->dpp, (s32)lane);

	return from >= 0 && exec >> from & 1 ? from : -1;
}

static void take_other_lanes(struct sim_gcn_operands *o, const struct sim_gcn_inst *inst, u64 exec)
{
	const u32 *from = o->lanes.src[0][0];
	u32 *to = o->copies[0][0], lane;

	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		s32 source = sim_gcn_dpp_source(inst, lane, exec);

		to[lane] = source < 0 ? 0 : from[source];
	}
	o->lanes.src[0][0] = to;
}

/* Packed sources: the halves that the instruction names, with their signs. */
static void take_halves(struct sim_gcn_operands *o, const struct sim_gcn_inst *inst, u32 i)
{
	u32 low = inst->select >> i & 1 ? 16 : 0, high = inst->select_high >> i & 1 ? 16 : 0;
	u32 signs = (inst->neg >> i & 1) << 15 | (inst->neg_high >> i & 1) << 31, lane;
	const u32 *from = o->lanes.src[i][0];
	u32 *to = o->copies[i][0];

	if (!low && high && !signs)
		return;
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		to[lane] = ((from[lane] >> low & 0xffff) | from[lane] >> high << 16) ^ signs;
	o->lanes.src[i][0] = to;
}

static void take_wide_halves(struct sim_gcn_operands *o, const struct sim_gcn_inst *inst, u32 i)
{
	const u32 *from[2] = { o->lanes.src[i][inst->select >> i & 1],
			       o->lanes.src[i][inst->select_high >> i & 1] };
	const u8 neg[2] = { inst->neg, inst->neg_high };
	u32 half, lane;

	for (half = 0; half < 2; half++) {
		o->lanes.src[i][half] = from[half];
		if (!(neg[half] >> i & 1))
			continue;
		for (lane = 0; lane < SIM_GCN_LANES; lane++)
			o->signs[i][half][lane] = from[half][lane] ^ 1u << 31;
		o->lanes.src[i][half] = o->signs[i][half];
	}
}

/* A mixed source becomes a float of 32 bits. */
static void take_mixed(struct sim_gcn_operands *o, const struct sim_gcn_inst *inst, u32 i)
{
	u32 shift = inst->select >> i & 1 ? 16 : 0, lane;
	bool half = inst->select_high >> i & 1;
	const u32 *from = o->lanes.src[i][0];
	u32 *to = o->copies[i][0];

	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		u32 value = half ? (u32)of32(f16(from[lane] >> shift)) : from[lane];

		value &= inst->neg_high >> i & 1 ? 0x7fffffff : ~0u;
		to[lane] = value ^ (u32)(inst->neg >> i & 1) << 31;
	}
	o->lanes.src[i][0] = to;
}

static void take_source(struct sim_gcn_operands *o, const struct sim_gcn_wave *wave,
			const struct sim_gcn_inst *inst, u32 i)
{
	u32 operand = inst->src[i], width = inst->width[i + 1], part;
	u64 value = 0;

	if (operand < SIM_GCN_VGPR0)
		value = sim_gcn_operand(wave, inst, i, 0);
	for (part = 0; part < width; part++)
		o->lanes.src[i][part] =
			operand < SIM_GCN_VGPR0
				? spread_value(o->copies[i][part], (u32)(value >> 32 * part))
				: wave->v[operand - SIM_GCN_VGPR0 + part];
	if (inst->extension == SIM_GCN_SDWA && i < 2)
		take_part(o, inst, i);
	if (inst->extension == SIM_GCN_DPP && i == 0)
		take_other_lanes(o, inst, sim_gcn_pair(wave, SIM_GCN_EXEC));
	if (inst->flags & SIM_GCN_PACKED_HALF)
		take_halves(o, inst, i);
	else if (inst->flags & SIM_GCN_PACKED_WIDE)
		take_wide_halves(o, inst, i);
	else if (inst->flags & SIM_GCN_MIXED)
		take_mixed(o, inst, i);
	else
		apply_signs(o, inst, i);
}

void sim_gcn_take_sources(struct sim_gcn_operands *o, const struct sim_gcn_wave *wave,
			  const struct sim_gcn_inst *inst)
{
	u32 i;

	for (i = 0; i < 3; i++)
		if (inst->width[i + 1])
			take_source(o, wave, inst, i);
	for (i = 0; inst->flags & SIM_GCN_ACCUMULATES && i < inst->width[0]; i++)
		o->lanes.src[2][i] = wave->v[inst->dst - SIM_GCN_VGPR0 + i];
	o->lanes.carries = 0;
	if (inst->flags & SIM_GCN_CARRY_IN)
		o->lanes.carries = sim_gcn_pair(wave, inst->src[2]);
	else if (inst->flags & SIM_GCN_VCC_IN)
		o->lanes.carries = sim_gcn_pair(wave, SIM_GCN_VCC);
	if (inst->flags & SIM_GCN_KEEPS)
		o->lanes.old = wave->v[inst->dst - SIM_GCN_VGPR0];
}
