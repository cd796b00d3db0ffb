// SPDX-License-Identifier: GPL-2.0-only
/* Runs instructions that access memory: scalar loads; loads, stores and atomics of lanes; and LDS.
 */
#include "gcn_memory.h"

#define NO_SGPR 127u

int sim_gcn_smem(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	const struct sim_gcn_env *env = run->env;
	struct sim_gcn_wave *wave = run->wave;
	u64 va;

	if (!inst->width[0])
		return 0;
	if (!inst->width[1]) {
		sim_gcn_set_pair(wave, inst->dst, env->now(env->arg));
		return 0;
	}
	va = sim_gcn_pair(wave, inst->src[0]) & ~3ull;
	if (inst->saddr != NO_SGPR)
		va += wave->s[inst->saddr] & ~3u;
	else
		va += (u64)(s64)inst->offset & ~3ull;
	return env->read(env->arg, va, &wave->s[inst->dst], 4u * inst->width[0]);
}

u32 *sim_gcn_lane(struct sim_gcn_run *run, u32 operand, u32 i, u32 lane)
{
	return &run->wave->v[operand - SIM_GCN_VGPR0 + i][lane];
}

static void find_addresses(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u64 *va)
{
	bool is_pair = inst->width[1] == 2;
	const u32 *low = sim_gcn_lane(run, inst->src[0], 0, 0);
	const u32 *high = is_pair ? sim_gcn_lane(run, inst->src[0], 1, 0) : NULL;
	u64 base = (is_pair ? 0 : sim_gcn_pair(run->wave, inst->saddr)) + (u64)(s64)inst->offset;
	u32 lane;

	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		va[lane] = base + low[lane] + (is_pair ? (u64)high[lane] << 32 : 0);
}

/* Copy between registers of a lane and @bytes of memory. */
void sim_gcn_gather(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 operand, u32 lane,
		    u32 bytes, u8 *to)
{
	u32 i, half = inst->flags & SIM_GCN_HIGH ? 2 : 0;

	for (i = 0; 4 * i < bytes; i++)
		memcpy(to + 4 * i, (u8 *)sim_gcn_lane(run, operand, i, lane) + half,
		       min(bytes - 4 * i, 4u));
}

/* The registers of an MI210 have ECC, so a load writes all 32 bits: the other half becomes zero.
 * rocBLAS relies on it: it loads two halves to two registers, and combines these by v_or_b32. */
static u32 to_half(const struct sim_gcn_inst *inst, u32 value)
{
	return inst->flags & SIM_GCN_HIGH ? value << 16 : value & 0xffff;
}

void sim_gcn_spread(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 operand, u32 lane,
		    const u8 *from, u32 bytes)
{
	u32 i;

	for (i = 0; 4 * i < bytes; i++) {
		u32 *reg = sim_gcn_lane(run, operand, i, lane), part = min(bytes - 4 * i, 4u),
		    value = 0;

		memcpy(&value, from + 4 * i, part);
		if (inst->flags & SIM_GCN_SIGNED && value >> (8 * part - 1))
			value |= ~0u << 8 * part;
		*reg = inst->flags & SIM_GCN_D16 ? to_half(inst, value) : value;
	}
}

/* The number of active lanes from @lane on with consecutive numbers and addresses. */
static u32 find_run(const u64 *va, u64 exec, u32 lane, u32 bytes)
{
	u32 limit = SIM_GCN_BOUNCE_BYTES / bytes, count = 1;

	while (count < limit && lane + count < SIM_GCN_LANES && exec >> (lane + count) & 1 &&
	       va[lane + count] == va[lane] + (u64)count * bytes)
		count++;
	return count;
}

static int store(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane, u32 count,
		 u64 va, u32 bytes)
{
	u32 i;

	for (i = 0; i < count; i++)
		sim_gcn_gather(run, inst, inst->src[1], lane + i, bytes, run->bounce + i * bytes);
	return run->env->write(run->env->arg, va, run->bounce, count * bytes);
}

static int load(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane, u32 count,
		u64 va, u32 bytes)
{
	int ret = run->env->read(run->env->arg, va, run->bounce, count * bytes);
	u32 i;

	/* whole registers of neighbouring lanes lie side by side, too */
	if (ret == 0 && bytes == 4)
		memcpy(sim_gcn_lane(run, inst->dst, 0, lane), run->bounce, 4 * count);
	for (i = 0; ret == 0 && bytes != 4 && i < count; i++)
		sim_gcn_spread(run, inst, inst->dst, lane + i, run->bounce + i * bytes, bytes);
	return ret;
}

int sim_gcn_transfer(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u64 exec,
		     const u64 *va, u32 bytes)
{
	bool is_flat = inst->format == SIM_GCN_FLAT && !inst->global;
	u32 lane = 0, count;
	int ret = 0;

	for (; ret == 0 && lane < SIM_GCN_LANES; lane += count) {
		count = 1;
		if (!(exec >> lane & 1))
			continue;
		if (is_flat && sim_gcn_is_aperture(run, va[lane])) {
			ret = sim_gcn_transfer_aperture(run, inst, lane, va[lane], bytes);
			continue;
		}
		count = find_run(va, exec, lane, bytes);
		ret = (inst->flags & SIM_GCN_STORE ? store : load)(run, inst, lane, count, va[lane],
								   bytes);
	}
	return ret;
}

static u64 value_of(struct sim_gcn_run *run, u32 operand, u32 lane, u32 dwords)
{
	u64 value = *sim_gcn_lane(run, operand, 0, lane);

	return dwords == 2 ? value | (u64)*sim_gcn_lane(run, operand, 1, lane) << 32 : value;
}

static u64 cut(u64 value, u32 bytes)
{
	return bytes == 4 ? (u32)value : value;
}

static int atomic(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane, u64 va,
		  u32 bytes)
{
	const struct sim_gcn_env *env = run->env;
	u64 seen = 0, before;
	struct sim_gcn_alu alu = { .lane = lane };
	int ret;

	if (va % bytes || (!inst->global && sim_gcn_is_aperture(run, va)))
		return sim_gcn_complain(run, inst, "its address is not aligned, or not in memory");
	alu.src[1] = value_of(run, inst->src[1], lane, bytes / 4);
	if (inst->width[2] > bytes / 4)
		alu.src[2] = value_of(run, inst->src[1] + bytes / 4, lane, bytes / 4);
	ret = env->read(env->arg, va, &seen, bytes);
	do {
		before = seen;
		alu.src[0] = before;
		if (ret == 0)
			ret = env->exchange(env->arg, va, bytes, &seen,
					    cut(sim_gcn_rows[inst->op].compute(&alu), bytes));
	} while (ret == 0 && seen != before);
	if (ret == 0 && inst->width[0])
		sim_gcn_spread(run, inst, inst->dst, lane, (const u8 *)&seen, bytes);
	return ret;
}

int sim_gcn_flat(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	u64 exec = sim_gcn_pair(run->wave, SIM_GCN_EXEC), va[SIM_GCN_LANES];
	bool wide = inst->op >= SIM_GCN_atomic_swap_x2;
	struct sim_gcn_alu none = { .lane = 0 };
	u32 lane;
	int ret = 0;

	find_addresses(run, inst, va);
	if (!(inst->flags & SIM_GCN_ATOMIC))
		return sim_gcn_transfer(run, inst, exec, va, (u32)sim_gcn_compute(inst->op, &none));
	for (lane = 0; ret == 0 && lane < SIM_GCN_LANES; lane++)
		if (exec >> lane & 1)
			ret = atomic(run, inst, lane, va[lane], wide ? 8 : 4);
	return ret;
}

/* The part of LDS that an access touches, or NULL. Addresses wrap around at 32 bits, because
 * compilers subtract in the register and add in the offset. */
u8 *sim_gcn_lds_at(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 at, u32 bytes)
{
	u32 size = run->dispatch->lds_bytes;

	if (at < size && bytes <= size - at && at % min(bytes, 4u) == 0)
		return run->group->lds + at;
	(void)sim_gcn_complain(run, inst, "its address is not in the LDS of its workgroup");
	return NULL;
}

static int lds_atomic(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane, u32 base)
{
	u32 bytes = 4u * inst->width[2];
	u8 *at = sim_gcn_lds_at(run, inst, base + (u32)inst->offset, bytes);
	struct sim_gcn_alu alu = { .lane = lane };
	u64 value;

	if (!at)
		return -EFAULT;
	memcpy(&alu.src[0], at, bytes);
	alu.src[1] = value_of(run, inst->src[1], lane, bytes / 4);
	value = sim_gcn_rows[inst->op].compute(&alu);
	memcpy(at, &value, bytes);
	if (inst->width[0])
		sim_gcn_spread(run, inst, inst->dst, lane, (const u8 *)&alu.src[0], bytes);
	return 0;
}

static int lds_transfer(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane,
			u32 base)
{
	struct sim_gcn_alu none = { .lane = 0 };
	u32 bytes = (u32)sim_gcn_rows[inst->op].compute(&none);
	u32 parts = inst->flags & SIM_GCN_PAIR ? 2 : 1, i;
	u32 unit = inst->flags & SIM_GCN_FAR ? 64 * bytes : bytes;
	u8 *at[2];

	for (i = 0; i < parts; i++) {
		u32 offset = parts == 2 ? (inst->offset >> 8 * i & 0xff) * unit : (u32)inst->offset;

		at[i] = sim_gcn_lds_at(run, inst, base + offset, bytes);
		if (!at[i])
			return -EFAULT;
	}
	for (i = 0; i < parts; i++) {
		if (inst->flags & SIM_GCN_STORE)
			sim_gcn_gather(run, inst, inst->src[1 + i], lane, bytes, at[i]);
		else
			sim_gcn_spread(run, inst, inst->dst + i * max(bytes / 4, 1u), lane, at[i],
				       bytes);
	}
	return 0;
}

/* Passes values between lanes: each lane names the one that it takes from, or gives to. Disabled
 * lanes give 0. Of several that give to a lane, the last one wins. */
static int permute_lanes(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u64 exec)
{
	u32 result[SIM_GCN_LANES] = { 0 }, lane;

	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		u32 named = (*sim_gcn_lane(run, inst->src[0], 0, lane) + (u32)inst->offset) / 4 %
			    SIM_GCN_LANES;

		if (inst->op == SIM_GCN_ds_bpermute_b32 && exec >> named & 1)
			result[lane] = *sim_gcn_lane(run, inst->src[1], 0, named);
		else if (inst->op == SIM_GCN_ds_permute_b32 && exec >> lane & 1)
			result[named] = *sim_gcn_lane(run, inst->src[1], 0, lane);
	}
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		if (exec >> lane & 1)
			*sim_gcn_lane(run, inst->dst, 0, lane) = result[lane];
	return 0;
}

int sim_gcn_ds(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	u64 exec = sim_gcn_pair(run->wave, SIM_GCN_EXEC);
	u32 lane;
	int ret = 0;

	if (inst->flags & SIM_GCN_ACROSS)
		return permute_lanes(run, inst, exec);
	for (lane = 0; ret == 0 && lane < SIM_GCN_LANES; lane++) {
		/* read first, because a load may overwrite it */
		u32 base = *sim_gcn_lane(run, inst->src[0], 0, lane);

		if (!(exec >> lane & 1))
			continue;
		if (inst->flags & SIM_GCN_ATOMIC)
			ret = lds_atomic(run, inst, lane, base);
		else
			ret = lds_transfer(run, inst, lane, base);
	}
	return ret;
}
