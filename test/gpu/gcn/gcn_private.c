// SPDX-License-Identifier: GPL-2.0-only
/* Private memory of work-items, which compilers use for arrays and for registers that do not
 * suffice. A wave has a part of the queue's memory. In it, dwords of the 64 lanes lie side by side:
 * dword 0 of all lanes, then dword 1 (swizzled buffers in the manual). Instructions reach it as a
 * buffer, or by flat addresses, which have an aperture for it and one for LDS. */
#include "gcn_memory.h"

#define DWORD 4u

/* Of the buffer's third and second dword: swizzling by 64 lanes, elements of 4 bytes, and the lane
 * as the index (SQ_BUF_RSRC_WORD1 and 3). */
#define SWIZZLED    (1u << 31)
#define LAYOUT_MASK (0x1fu << 19)
#define LAYOUT      (1u << 19 | 3u << 21 | 1u << 23)

static u64 address_in(u64 base, u32 offset, u32 lane)
{
	return base + (u64)offset / DWORD * DWORD * SIM_GCN_LANES + lane * DWORD + offset % DWORD;
}

/* One dword or less after the other. */
static int copy(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u64 base, u32 offset,
		u32 lane)
{
	const struct sim_gcn_env *env = run->env;
	struct sim_gcn_alu none = { .lane = 0 };
	u32 bytes = (u32)sim_gcn_rows[inst->op].compute(&none), done, part;
	bool is_store = inst->flags & SIM_GCN_STORE;
	u8 data[4 * DWORD];
	int ret = 0;

	if (is_store)
		sim_gcn_gather(run, inst, inst->src[1], lane, bytes, data);
	for (done = 0; ret == 0 && done < bytes; done += part) {
		u64 va = address_in(base, offset + done, lane);

		part = min(DWORD - (offset + done) % DWORD, bytes - done);
		ret = is_store ? env->write(env->arg, va, data + done, part)
			       : env->read(env->arg, va, data + done, part);
	}
	if (ret == 0 && !is_store)
		sim_gcn_spread(run, inst, inst->dst, lane, data, bytes);
	return ret;
}

int sim_gcn_private(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	u64 exec = sim_gcn_pair(run->wave, SIM_GCN_EXEC), base;
	const u32 *buffer = &run->wave->s[inst->saddr];
	u32 lane;
	int ret = 0;

	if (!(buffer[1] & SWIZZLED) || (buffer[3] & LAYOUT_MASK) != LAYOUT)
		return sim_gcn_complain(run, inst, "its buffer is no private memory");
	base = sim_gcn_buffer_base(run, inst);
	for (lane = 0; ret == 0 && lane < SIM_GCN_LANES; lane++)
		if (exec >> lane & 1)
			ret = copy(run, inst, base, sim_gcn_buffer_offset(run, inst, lane), lane);
	return ret;
}

bool sim_gcn_is_aperture(const struct sim_gcn_run *run, u64 va)
{
	const struct sim_gcn_scratch *scratch = &run->dispatch->scratch;
	u32 high = (u32)(va >> 32);

	return high && (high == scratch->private_base || high == scratch->shared_base);
}

int sim_gcn_transfer_aperture(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane,
			      u64 va, u32 bytes)
{
	u8 *at;

	if (va >> 32 == run->dispatch->scratch.private_base)
		return copy(run, inst, sim_gcn_pair(run->wave, SIM_GCN_FLAT_SCRATCH), (u32)va,
			    lane);
	at = sim_gcn_lds_at(run, inst, (u32)va, bytes);
	if (!at)
		return -EFAULT;
	if (inst->flags & SIM_GCN_STORE)
		sim_gcn_gather(run, inst, inst->src[1], lane, bytes, at);
	else
		sim_gcn_spread(run, inst, inst->dst, lane, at, bytes);
	return 0;
}
