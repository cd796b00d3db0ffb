// SPDX-License-Identifier: GPL-2.0-only
/* Runs scalar and vector instructions that do not access memory. */
#include "gcn.h"
#include "gcn_floats.h"

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
		wave->pc = sim_gcn_operand(wave, inst, 0, 0) & ~3ull;
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
	alu.src[0] = sim_gcn_operand(wave, inst, 0, 0);
	if (inst->src[0] == SIM_GCN_PRIVATE_BASE && inst->width[1])
		alu.src[0] = (u64)run->dispatch->scratch.private_base << 32;
	if (inst->src[0] == SIM_GCN_SHARED_BASE && inst->width[1])
		alu.src[0] = (u64)run->dispatch->scratch.shared_base << 32;
	alu.src[1] = sim_gcn_operand(wave, inst, 1, 0);
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
	u32 lane = inst->width[2] ? sim_gcn_operand(wave, inst, 1, 0) & 63
				  : first_lane(sim_gcn_pair(wave, SIM_GCN_EXEC));

	if (inst->op == SIM_GCN_v_writelane_b32)
		wave->v[inst->dst - SIM_GCN_VGPR0][lane] = (u32)sim_gcn_operand(wave, inst, 0, 0);
	else if (inst->flags & SIM_GCN_TO_SCALAR)
		wave->s[inst->dst] = (u32)sim_gcn_operand(wave, inst, 0, lane);
	else
		return false;
	return true;
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

/* Only a part of each lane gets the value (SDWA). */
static void place_part(u32 *result, const u32 *old, const struct sim_gcn_inst *inst)
{
	u32 shift = sim_gcn_part_shift(inst->dst_part), lane;
	u32 width = inst->dst_part < SIM_GCN_WORD0 ? 8 : 16;
	u32 mask = inst->dst_part == SIM_GCN_DWORD ? ~0u : (1u << width) - 1;

	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		u32 value = (result[lane] & mask) << shift, above = ~(mask << shift);

		if (inst->dst_rest == SIM_GCN_REST_KEPT)
			value |= old[lane] & above;
		else if (inst->dst_rest == SIM_GCN_REST_SIGNS && result[lane] & (mask ^ mask >> 1))
			value |= above & ~((1u << shift) - 1);
		result[lane] = value;
	}
}

static void clamp(u32 *result)
{
	u32 lane;

	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		result[lane] = (u32)of32((float)smaller(larger(f32(result[lane]), 0), 1));
}

/* A difference that is less than 0 becomes 0. */
static void saturate(u32 *result, const u32 *minuend)
{
	u32 lane;

	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		result[lane] = result[lane] > minuend[lane] ? 0 : result[lane];
}

/* Lanes that may be written. DPP has masks of rows of 16 lanes and of banks of 4, and without
 * bound, lanes that would read a value that is not there keep theirs. */
static u64 lanes_to_write(const struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u64 exec = sim_gcn_pair(wave, SIM_GCN_EXEC), mask = 0;
	u32 lane;

	if (inst->extension != SIM_GCN_DPP)
		return exec;
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		if (inst->rows >> lane / 16 & inst->banks >> lane / 4 % 4 & 1 &&
		    (inst->bound || sim_gcn_dpp_source(inst, lane, exec) >= 0))
			mask |= 1ull << lane;
	return exec & mask;
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

static void set_results(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst,
			struct sim_gcn_lanes *lanes)
{
	u64 mask = lanes_to_write(wave, inst);
	u32 i, first = inst->dst - SIM_GCN_VGPR0;

	if (inst->clamp && inst->flags & SIM_GCN_FLOAT)
		clamp(lanes->result[0]);
	else if (inst->clamp)
		saturate(lanes->result[0], lanes->src[0][0]);
	if (inst->extension == SIM_GCN_SDWA)
		place_part(lanes->result[0], wave->v[first], inst);
	for (i = 0; i < inst->width[0]; i++)
		set_register(wave->v[first + i], lanes->result[i], mask);
}

static void swap(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u32 *to = wave->v[inst->dst - SIM_GCN_VGPR0], *from = wave->v[inst->src[0] - SIM_GCN_VGPR0];
	u64 exec = sim_gcn_pair(wave, SIM_GCN_EXEC);
	u32 old[SIM_GCN_LANES];

	memcpy(old, to, sizeof(old));
	set_register(to, from, exec);
	set_register(from, old, exec);
}

int sim_gcn_vector(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	struct sim_gcn_wave *wave = run->wave;
	u64 exec = sim_gcn_pair(wave, SIM_GCN_EXEC);
	struct sim_gcn_operands o;

	if (inst->flags & SIM_GCN_MATRIX)
		sim_gcn_matrix(wave, inst);
	if (inst->flags & SIM_GCN_MATRIX || run_across(wave, inst))
		return 0;
	if (inst->op == SIM_GCN_v_swap_b32) {
		swap(wave, inst);
		return 0;
	}
	sim_gcn_take_sources(&o, wave, inst);
	if (inst->op == SIM_GCN_v_cmp) {
		sim_gcn_compare_lanes(inst->compare, &o.lanes);
	} else {
		sim_gcn_compute_lanes(inst->op, &o.lanes);
		set_results(wave, inst, &o.lanes);
	}
	set_mask(wave, inst, o.lanes.carries & exec);
	return 0;
}
