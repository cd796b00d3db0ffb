// SPDX-License-Identifier: GPL-2.0-only
/* Runs scalar and vector instructions that do not access memory. */
#include "gcn.h"

u64 sim_gcn_pair(const struct sim_gcn_wave *wave, u32 sgpr)
{
	return wave->s[sgpr] | (u64)wave->s[sgpr + 1] << 32;
}

void sim_gcn_set_pair(struct sim_gcn_wave *wave, u32 sgpr, u64 value)
{
	wave->s[sgpr] = (u32)value;
	wave->s[sgpr + 1] = (u32)(value >> 32);
}

static void set_scalar(struct sim_gcn_wave *wave, u32 sgpr, u32 width, u64 value)
{
	if (width == 2)
		sim_gcn_set_pair(wave, sgpr, value);
	else if (width == 1)
		wave->s[sgpr] = (u32)value;
}

static u64 get_scalar(const struct sim_gcn_wave *wave, u32 sgpr, u32 width)
{
	return width == 2 ? sim_gcn_pair(wave, sgpr) : wave->s[sgpr];
}

static u64 operand_of(const struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst, u32 i,
		      u32 lane)
{
	u32 operand = inst->src[i], width = inst->width[i + 1];
	u64 value;

	if (!width)
		return 0;
	if (operand < SIM_GCN_ZERO)
		return get_scalar(wave, operand, width);
	if (operand < SIM_GCN_VGPR0)
		return sim_gcn_constant(inst, operand, width);
	value = wave->v[operand - SIM_GCN_VGPR0][lane];
	if (width == 2)
		value |= (u64)wave->v[operand - SIM_GCN_VGPR0 + 1][lane] << 32;
	return value;
}

static void branch(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst, bool taken)
{
	if (taken)
		wave->pc += (u64)((s64)inst->offset * 4);
}

static int run_sopp(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u64 vcc = sim_gcn_pair(wave, SIM_GCN_VCC), exec = sim_gcn_pair(wave, SIM_GCN_EXEC);

	switch (inst->op) {
	case SIM_GCN_s_endpgm:
		wave->state = SIM_GCN_ENDED;
		break;
	case SIM_GCN_s_barrier:
		wave->state = SIM_GCN_WAITS;
		break;
	case SIM_GCN_s_branch:
		branch(wave, inst, true);
		break;
	case SIM_GCN_s_cbranch_scc0:
	case SIM_GCN_s_cbranch_scc1:
		branch(wave, inst, wave->scc == (inst->op == SIM_GCN_s_cbranch_scc1));
		break;
	case SIM_GCN_s_cbranch_vccz:
	case SIM_GCN_s_cbranch_vccnz:
		branch(wave, inst, (vcc != 0) == (inst->op == SIM_GCN_s_cbranch_vccnz));
		break;
	case SIM_GCN_s_cbranch_execz:
	case SIM_GCN_s_cbranch_execnz:
		branch(wave, inst, (exec != 0) == (inst->op == SIM_GCN_s_cbranch_execnz));
		break;
	default: /* waits and hints: each instruction is complete when it has run */
		break;
	}
	return 0;
}

static bool run_jump(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u64 next = wave->pc;

	if (inst->op == SIM_GCN_s_setpc_b64 || inst->op == SIM_GCN_s_swappc_b64)
		wave->pc = operand_of(wave, inst, 0, 0) & ~3ull;
	else if (inst->op != SIM_GCN_s_getpc_b64)
		return false;
	set_scalar(wave, inst->dst, inst->width[0], next);
	return true;
}

int sim_gcn_scalar(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	struct sim_gcn_wave *wave = run->wave;
	struct sim_gcn_alu alu = { .carry = wave->scc };
	u64 value, exec = sim_gcn_pair(wave, SIM_GCN_EXEC);

	if (inst->format == SIM_GCN_SOPP)
		return run_sopp(wave, inst);
	if (run_jump(wave, inst))
		return 0;
	alu.src[0] = operand_of(wave, inst, 0, 0);
	alu.src[1] = operand_of(wave, inst, 1, 0);
	if (inst->format == SIM_GCN_SOPK)
		alu.src[0] = (u64)(s64)inst->offset;
	if (inst->width[0])
		alu.src[2] = get_scalar(wave, inst->dst, inst->width[0]);
	if (inst->flags & SIM_GCN_SAVEEXEC)
		alu.src[1] = exec;
	value = sim_gcn_compute(inst->op, &alu);
	wave->scc = alu.carry;
	if (inst->flags & SIM_GCN_SAVEEXEC) {
		sim_gcn_set_pair(wave, inst->dst, exec);
		sim_gcn_set_pair(wave, SIM_GCN_EXEC, value);
	} else if (!(inst->flags & SIM_GCN_COMPARES)) {
		set_scalar(wave, inst->dst, inst->width[0], value);
	}
	return 0;
}

static u32 first_lane(u64 exec)
{
	u32 lane = 0;

	while (exec && !(exec >> lane & 1))
		lane++;
	return lane;
}

/* Between one lane and scalar registers. EXEC does not disable these instructions. */
static bool run_across(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u32 lane = inst->width[2] ? operand_of(wave, inst, 1, 0) & 63
				  : first_lane(sim_gcn_pair(wave, SIM_GCN_EXEC));

	if (inst->op == SIM_GCN_v_writelane_b32)
		wave->v[inst->dst - SIM_GCN_VGPR0][lane] = (u32)operand_of(wave, inst, 0, 0);
	else if (inst->flags & SIM_GCN_TO_SCALAR)
		wave->s[inst->dst] = (u32)operand_of(wave, inst, 0, lane);
	else
		return false;
	return true;
}

/* The same value in all lanes. */
static const u32 *spread_value(u32 *to, u32 value)
{
	u32 lane;

	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		to[lane] = value;
	return to;
}

/* Copies of operands that are not registers as they are. */
struct operands {
	u32 copies[3][2][SIM_GCN_LANES];
	struct sim_gcn_lanes lanes;
};

/* Takes the sign of source @i away, or turns it. The sign is in the last dword. */
static void apply_signs(struct operands *o, const struct sim_gcn_inst *inst, u32 i)
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

static void take_source(struct operands *o, const struct sim_gcn_wave *wave,
			const struct sim_gcn_inst *inst, u32 i)
{
	u32 operand = inst->src[i], width = inst->width[i + 1], part;
	u64 value;

	if (operand < SIM_GCN_VGPR0)
		value = operand_of(wave, inst, i, 0);
	for (part = 0; part < width; part++)
		o->lanes.src[i][part] =
			operand < SIM_GCN_VGPR0
				? spread_value(o->copies[i][part], (u32)(value >> 32 * part))
				: wave->v[operand - SIM_GCN_VGPR0 + part];
	apply_signs(o, inst, i);
}

static void take_sources(struct operands *o, const struct sim_gcn_wave *wave,
			 const struct sim_gcn_inst *inst)
{
	u32 i;

	for (i = 0; i < 3; i++)
		if (inst->width[i + 1])
			take_source(o, wave, inst, i);
	for (i = 0; inst->flags & SIM_GCN_ACCUMULATES && i < inst->width[0]; i++)
		o->lanes.src[2][i] = wave->v[inst->dst - SIM_GCN_VGPR0 + i];
	o->lanes.carries = inst->flags & SIM_GCN_CARRY_IN ? sim_gcn_pair(wave, inst->src[2]) : 0;
	o->lanes.select = inst->select;
}

/* The destination of the lanes' bits. */
static void set_mask(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst, u64 mask)
{
	if (inst->op == SIM_GCN_v_cmp) {
		sim_gcn_set_pair(wave, inst->dst, mask);
		if (inst->flags & SIM_GCN_TO_EXEC)
			sim_gcn_set_pair(wave, SIM_GCN_EXEC, mask);
	} else if (inst->flags & SIM_GCN_CARRY_OUT) {
		sim_gcn_set_pair(wave, inst->sdst, mask);
	}
}

/* Lanes that EXEC disables keep what they have. */
static void set_register(u32 *to, const u32 *from, u64 exec)
{
	u32 lane;

	if (exec == ~0ull) {
		memcpy(to, from, 4 * SIM_GCN_LANES);
		return;
	}
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		to[lane] = exec >> lane & 1 ? from[lane] : to[lane];
}

int sim_gcn_vector(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	struct sim_gcn_wave *wave = run->wave;
	u64 exec = sim_gcn_pair(wave, SIM_GCN_EXEC);
	struct operands o;
	u32 i;

	if (run_across(wave, inst))
		return 0;
	take_sources(&o, wave, inst);
	if (inst->op == SIM_GCN_v_cmp) {
		sim_gcn_compare_lanes(inst->compare, &o.lanes);
	} else {
		sim_gcn_compute_lanes(inst->op, &o.lanes);
		for (i = 0; i < inst->width[0]; i++)
			set_register(wave->v[inst->dst - SIM_GCN_VGPR0 + i], o.lanes.result[i],
				     exec);
	}
	set_mask(wave, inst, o.lanes.carries & exec);
	return 0;
}
