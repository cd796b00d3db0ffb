// SPDX-License-Identifier: GPL-2.0-only
/* Runs a dispatch slice by slice: one workgroup after the other, the waves of a workgroup in turn.
 * The kernel's descriptor defines the initial registers of a wave (LLVM, "User Guide for AMDGPU
 * Backend", kernel descriptor and initial kernel execution state). */
#include "gcn.h"

#define STEPS_PER_TURN 64u

/* Dwords of the descriptor. */
enum { LDS = 0, PRIVATE = 1, RSRC3 = 11, RSRC1 = 12, RSRC2 = 13, PROPERTIES = 14 };

/* How floats are rounded, and what becomes of denormals: fields of RSRC1. Kernels of OpenCL flush
 * denormals of 32 bits; here they keep them. */
enum { FLOAT_MODE = 0xcf << 12, DENORMALS_KEPT = 0xc << 16 };

enum {
	WANTS_PRIVATE_BUFFER = 1u << 0,
	WANTS_PACKET = 1u << 1,
	WANTS_QUEUE = 1u << 2,
	WANTS_KERNARG = 1u << 3,
	WANTS_DISPATCH_ID = 1u << 4,
	WANTS_FLAT_SCRATCH = 1u << 5,
	WANTS_PRIVATE_SIZE = 1u << 6,
	WANTS_WAVE32 = 1u << 10,
	PROPERTIES_BITS = 0x7f,
};

int sim_gcn_complain(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, const char *what)
{
	char text[SIM_GCN_TEXT], line[SIM_GCN_TEXT + 96];

	sim_gcn_text(inst, text, sizeof(text));
	(void)snprintf(line, sizeof(line), "%s: %s (code before 0x%" SIM_PRIx64 ")", text, what,
		       run->wave->pc);
	run->env->complain(run->env->arg, line);
	return -EINVAL;
}

int sim_gcn_group_init(struct sim_gcn_group *group, u32 num_waves)
{
	group->waves = calloc(num_waves, sizeof(*group->waves));
	group->lds = calloc(1, SIM_GCN_LDS_BYTES);
	group->code = calloc(SIM_GCN_CACHED_INSTRUCTIONS, sizeof(*group->code));
	if (group->waves && group->lds && group->code)
		return 0;
	sim_gcn_group_done(group);
	return -ENOMEM;
}

void sim_gcn_group_done(struct sim_gcn_group *group)
{
	free(group->waves);
	free(group->lds);
	free(group->code);
	memset(group, 0, sizeof(*group));
}

static u32 user_sgprs(u32 properties)
{
	u32 count = properties & WANTS_PRIVATE_BUFFER ? 4 : 0, bit;

	for (bit = WANTS_PACKET; bit <= WANTS_FLAT_SCRATCH; bit <<= 1)
		count += properties & bit ? 2 : 0;
	return count + (properties & WANTS_PRIVATE_SIZE ? 1 : 0);
}

static const char *find_fault(const struct sim_gcn_dispatch *dispatch)
{
	u32 properties = dispatch->descriptor[PROPERTIES] & 0xffff;
	u32 rsrc2 = dispatch->descriptor[RSRC2], i;
	u64 items = 1;

	for (i = 0; i < 3; i++) {
		if (!dispatch->workgroup[i] || !dispatch->grid[i])
			return "a size of 0";
		items *= dispatch->workgroup[i];
	}
	if (items > SIM_GCN_MAX_WAVES * SIM_GCN_LANES)
		return "a workgroup beyond 1024 work-items";
	if (dispatch->lds_bytes > SIM_GCN_LDS_BYTES)
		return "LDS beyond 64 KiB";
	if (dispatch->lds_bytes < dispatch->descriptor[LDS])
		return "less LDS than the kernel needs";
	if (dispatch->descriptor[PRIVATE] > dispatch->scratch.wave_bytes / SIM_GCN_LANES)
		return "less private memory than the kernel needs";
	if (dispatch->descriptor[PRIVATE] &&
	    (items + SIM_GCN_LANES - 1) / SIM_GCN_LANES * dispatch->scratch.wave_bytes >
		    dispatch->scratch.bytes)
		return "less private memory than its waves need";
	if ((dispatch->descriptor[RSRC1] & FLOAT_MODE) != DENORMALS_KEPT)
		return "a mode of floats other than rounding to the nearest, with denormals of 16 and 64 bits";
	if (properties & WANTS_DISPATCH_ID || rsrc2 >> 10 & 1)
		return "the number of the dispatch, or of waves, which is not provided";
	if (properties & ~(u32)PROPERTIES_BITS)
		return "properties of another generation";
	if (user_sgprs(properties) != (rsrc2 >> 1 & 31))
		return "a number of user SGPRs that does not fit its properties";
	return dispatch->entry % 256 ? "an entry that is not aligned to 256 bytes" : NULL;
}

int sim_gcn_begin(struct sim_gcn_dispatch *dispatch, const struct sim_gcn_env *env)
{
	const char *fault = find_fault(dispatch);
	char line[160];
	u32 items;

	if (fault) {
		(void)snprintf(line, sizeof(line), "kernel at 0x%" SIM_PRIx64 ": %s",
			       dispatch->entry, fault);
		env->complain(env->arg, line);
		return -EINVAL;
	}
	items = dispatch->workgroup[0] * dispatch->workgroup[1] * dispatch->workgroup[2];
	dispatch->num_waves = (items + SIM_GCN_LANES - 1) / SIM_GCN_LANES;
	memset(dispatch->id, 0, sizeof(dispatch->id));
	dispatch->begun = dispatch->done = false;
	return 0;
}

static u32 put_pair(struct sim_gcn_wave *wave, u32 at, bool wanted, u64 value)
{
	if (!wanted)
		return at;
	sim_gcn_set_pair(wave, at, value);
	return at + 2;
}

static void set_user_sgprs(struct sim_gcn_wave *wave, const struct sim_gcn_dispatch *dispatch,
			   u32 number)
{
	const struct sim_gcn_scratch *scratch = &dispatch->scratch;
	u32 properties = dispatch->descriptor[PROPERTIES], rsrc2 = dispatch->descriptor[RSRC2];
	u32 at = 0, i;

	if (properties & WANTS_PRIVATE_BUFFER) {
		memcpy(wave->s, scratch->resource, sizeof(scratch->resource));
		at = ARRAY_SIZE(scratch->resource);
	}
	at = put_pair(wave, at, properties & WANTS_PACKET, dispatch->packet);
	at = put_pair(wave, at, properties & WANTS_QUEUE, dispatch->queue);
	at = put_pair(wave, at, properties & WANTS_KERNARG, dispatch->kernarg);
	at = put_pair(wave, at, properties & WANTS_FLAT_SCRATCH, scratch->address);
	if (properties & WANTS_PRIVATE_SIZE)
		wave->s[at] = scratch->wave_bytes / SIM_GCN_LANES;
	at = rsrc2 >> 1 & 31;
	for (i = 0; i < 3; i++)
		if (rsrc2 >> (7 + i) & 1)
			wave->s[at++] = dispatch->id[i];
	if (rsrc2 & 1)
		wave->s[at] = number * scratch->wave_bytes;
}

/* Registers that the kernel has: they begin with 0, and others are never read. RSRC1 has their
 * number in units of 8, and RSRC3 how many of them are VGPRs in units of 4. */
static void clear_wave(struct sim_gcn_wave *wave, const struct sim_gcn_dispatch *dispatch)
{
	u32 all = ((dispatch->descriptor[RSRC1] & 0x3f) + 1) * 8;
	u32 vgprs = min(((dispatch->descriptor[RSRC3] & 0x3f) + 1) * 4, all);

	memset(wave, 0, offsetof(struct sim_gcn_wave, v));
	memset(wave->v, 0, vgprs * sizeof(wave->v[0]));
	memset(wave->v[SIM_GCN_VGPRS], 0, (all - vgprs) * sizeof(wave->v[0]));
}

/* The position of a work-item in its workgroup. False if the lane has no work-item in the grid. */
static bool find_item(const struct sim_gcn_dispatch *dispatch, u32 item, u32 *ret_at)
{
	u32 i;

	for (i = 0; i < 3; i++) {
		ret_at[i] = i < 2 ? item % dispatch->workgroup[i] : item;
		item /= dispatch->workgroup[i];
		if (ret_at[i] >= dispatch->workgroup[i] ||
		    (u64)dispatch->id[i] * dispatch->workgroup[i] + ret_at[i] >= dispatch->grid[i])
			return false;
	}
	return true;
}

static void begin_wave(struct sim_gcn_wave *wave, const struct sim_gcn_dispatch *dispatch,
		       u32 number)
{
	u32 ids = dispatch->descriptor[RSRC2] >> 11 & 3, lane, at[3];
	u64 exec = 0;

	clear_wave(wave, dispatch);
	set_user_sgprs(wave, dispatch, number);
	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		if (!find_item(dispatch, number * SIM_GCN_LANES + lane, at))
			continue;
		exec |= 1ull << lane;
		/* this generation packs the three into one register */
		wave->v[0][lane] =
			at[0] | (ids > 0 ? at[1] << 10 : 0) | (ids > 1 ? at[2] << 20 : 0);
	}
	sim_gcn_set_pair(wave, SIM_GCN_EXEC, exec);
	wave->pc = dispatch->entry;
	wave->state = exec ? SIM_GCN_RUNS : SIM_GCN_ENDED;
}

static void begin_group(struct sim_gcn_run *run)
{
	u32 i;

	for (i = 0; i < run->dispatch->num_waves; i++)
		begin_wave(&run->group->waves[i], run->dispatch, i);
	memset(run->group->lds, 0, SIM_GCN_LDS_BYTES);
	run->dispatch->begun = true;
}

static void next_group(struct sim_gcn_dispatch *dispatch)
{
	u32 i;

	dispatch->begun = false;
	for (i = 0; i < 3; i++) {
		dispatch->id[i]++;
		if ((u64)dispatch->id[i] * dispatch->workgroup[i] < dispatch->grid[i])
			return;
		dispatch->id[i] = 0;
	}
	dispatch->done = true;
}

/* Fetches a second dword only for an instruction that needs it, because the code may end here. */
static int decode(struct sim_gcn_run *run, u64 pc, struct sim_gcn_inst *ret_inst)
{
	const struct sim_gcn_env *env = run->env;
	u32 words[2] = { 0, 0 };
	char line[128];
	int ret = env->read(env->arg, pc, &words[0], 4);

	if (ret < 0)
		return ret;
	if (sim_gcn_decode(words, 1, ret_inst) == 0)
		return 0;
	ret = env->read(env->arg, pc + 4, &words[1], 4);
	if (ret < 0)
		return ret;
	if (sim_gcn_decode(words, 2, ret_inst) == 0)
		return 0;
	(void)snprintf(line, sizeof(line),
		       "instruction %08x %08x at 0x%" SIM_PRIx64 " is not known", words[0],
		       words[1], pc);
	env->complain(env->arg, line);
	return -EINVAL;
}

/* The instruction at wave->pc, which goes on behind it. */
static int fetch(struct sim_gcn_run *run, const struct sim_gcn_inst **ret_inst)
{
	struct sim_gcn_wave *wave = run->wave;
	struct sim_gcn_cached *cached =
		&run->group->code[wave->pc / 4 % SIM_GCN_CACHED_INSTRUCTIONS];
	int ret;

	if (cached->pc != wave->pc || !cached->inst.bytes) {
		cached->inst.bytes = 0;
		ret = decode(run, wave->pc, &cached->inst);
		if (ret < 0) {
			cached->inst.bytes = 0;
			return ret;
		}
		cached->pc = wave->pc;
	}
	wave->pc += cached->inst.bytes;
	*ret_inst = &cached->inst;
	return 0;
}

static int step(struct sim_gcn_run *run)
{
	const struct sim_gcn_inst *inst;
	int ret = fetch(run, &inst);

	if (ret < 0)
		return ret;
	switch (inst->format) {
	case SIM_GCN_SMEM:
		return sim_gcn_smem(run, inst);
	case SIM_GCN_FLAT:
		return sim_gcn_flat(run, inst);
	case SIM_GCN_DS:
		return sim_gcn_ds(run, inst);
	case SIM_GCN_MUBUF:
		return sim_gcn_mubuf(run, inst);
	case SIM_GCN_VOP1:
	case SIM_GCN_VOP2:
	case SIM_GCN_VOP3:
	case SIM_GCN_VOPC:
		return sim_gcn_vector(run, inst);
	default:
		return sim_gcn_scalar(run, inst);
	}
}

/* A barrier opens when each wave that has not ended has reached it. */
static bool all_wait(const struct sim_gcn_run *run)
{
	u32 i;

	for (i = 0; i < run->dispatch->num_waves; i++)
		if (run->group->waves[i].state == SIM_GCN_RUNS)
			return false;
	return true;
}

static bool open_barrier(struct sim_gcn_run *run)
{
	bool any = false;
	u32 i;

	for (i = 0; i < run->dispatch->num_waves; i++) {
		struct sim_gcn_wave *wave = &run->group->waves[i];

		if (wave->state != SIM_GCN_WAITS)
			continue;
		wave->state = SIM_GCN_RUNS;
		any = true;
	}
	return any;
}

/* Each wave gets a turn, so that no wave waits for another that never runs. */
static int run_turns(struct sim_gcn_run *run, u32 *steps)
{
	u32 i, turn;
	int ret;

	for (i = 0; i < run->dispatch->num_waves; i++) {
		run->wave = &run->group->waves[i];
		for (turn = 0; turn < STEPS_PER_TURN && run->wave->state == SIM_GCN_RUNS; turn++) {
			ret = step(run);
			if (ret < 0)
				return ret;
			*steps -= min(*steps, 1u);
		}
	}
	return 0;
}

int sim_gcn_run(struct sim_gcn_dispatch *dispatch, struct sim_gcn_group *group,
		const struct sim_gcn_env *env, u32 steps)
{
	struct sim_gcn_run run = { .dispatch = dispatch, .group = group, .env = env };
	int ret;

	while (!dispatch->done && steps) {
		if (!dispatch->begun)
			begin_group(&run);
		ret = run_turns(&run, &steps);
		if (ret < 0)
			return ret;
		if (all_wait(&run) && !open_barrier(&run))
			next_group(dispatch);
	}
	return dispatch->done;
}
