// SPDX-License-Identifier: GPL-2.0-only
/* Buffer instructions. Four SGPRs describe a buffer: its address, the bytes that it has, and its
 * layout. Here are plain buffers, which are memory from an address on (raw buffers in the manual).
 * What lies behind the end reads as 0, and is not written. */
#include "gcn_memory.h"

#define BASE_MASK 0x0000ffffffffffffull

/* Of the second dword: the size of records, and how they are swizzled; of the fourth: the lane is
 * an index (SQ_BUF_RSRC_WORD1 and 3). */
#define RECORDS   0xffff0000u
#define LANE_ADDS (1u << 23)

static u32 scalar_offset(const struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	return inst->soffset < SIM_GCN_ZERO ? run->wave->s[inst->soffset]
					    : (u32)sim_gcn_constant(inst, inst->soffset, 1);
}

u64 sim_gcn_buffer_base(const struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	return (sim_gcn_pair(run->wave, inst->saddr) & BASE_MASK) + scalar_offset(run, inst);
}

u32 sim_gcn_buffer_offset(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane)
{
	u32 offset = (u32)inst->offset;

	return inst->width[1] ? offset + *sim_gcn_lane(run, inst->src[0], 0, lane) : offset;
}

/* A lane whose access crosses the end, dword by dword. */
static int cross_end(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane, u64 va,
		     u32 bytes)
{
	const struct sim_gcn_env *env = run->env;
	u8 data[SIM_GCN_BOUNCE_BYTES] = { 0 };
	u32 all = (u32)sim_gcn_rows[inst->op].compute(&(struct sim_gcn_alu){ .lane = 0 });
	int ret;

	if (inst->flags & SIM_GCN_STORE) {
		sim_gcn_gather(run, inst, inst->src[1], lane, all, data);
		return bytes ? env->write(env->arg, va, data, bytes) : 0;
	}
	ret = bytes ? env->read(env->arg, va, data, bytes) : 0;
	if (ret == 0)
		sim_gcn_spread(run, inst, inst->dst, lane, data, all);
	return ret;
}

static int plain(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	u32 size = run->wave->s[inst->saddr + 2], begin = scalar_offset(run, inst), lane;
	u32 bytes = (u32)sim_gcn_rows[inst->op].compute(&(struct sim_gcn_alu){ .lane = 0 });
	u64 exec = sim_gcn_pair(run->wave, SIM_GCN_EXEC), va[SIM_GCN_LANES], inside = 0;
	u64 base = sim_gcn_buffer_base(run, inst);
	int ret = 0;

	size = size > begin ? size - begin : 0;
	for (lane = 0; ret == 0 && lane < SIM_GCN_LANES; lane++) {
		u32 offset = sim_gcn_buffer_offset(run, inst, lane);
		u32 left = offset < size ? size - offset : 0;

		va[lane] = base + offset;
		if (left >= bytes)
			inside |= 1ull << lane;
		else if (exec >> lane & 1)
			ret = cross_end(run, inst, lane, va[lane], left & ~3u);
	}
	return ret < 0 ? ret : sim_gcn_transfer(run, inst, exec & inside, va, bytes);
}

int sim_gcn_mubuf(struct sim_gcn_run *run, const struct sim_gcn_inst *inst)
{
	const u32 *buffer = &run->wave->s[inst->saddr];

	/* caches: each access has reached memory when it has run */
	if (!(inst->flags & (SIM_GCN_LOAD | SIM_GCN_STORE)))
		return 0;
	return buffer[1] & RECORDS || buffer[3] & LANE_ADDS ? sim_gcn_private(run, inst)
							    : plain(run, inst);
}
