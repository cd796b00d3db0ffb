// SPDX-License-Identifier: GPL-2.0-only
#include "gcn_kernel.h"

#define ENTRY_OFFSET 4u /* dwords of the descriptor: where the code begins, from there */
#define MAGIC        0x5245564153564157ull

void sim_gcn_kernel_done(struct sim_gcn_kernel *kernel)
{
	sim_gcn_group_done(&kernel->group);
	memset(kernel, 0, sizeof(*kernel));
}

static int allocate(struct sim_gcn_kernel *kernel, const struct sim_gcn_dispatch *gcn)
{
	kernel->gcn = *gcn;
	return sim_gcn_group_init(&kernel->group, gcn->num_waves);
}

/* What the queue's owner says of private memory: a part of amd_queue_t. ROCr before 7 also has its
 * size there, behind the address. */
struct queue_scratch {
	u32 read_offset, tmpring, resource[4]; /* behind the read index */
	u64 address;
};

#define QUEUE_APERTURES    64u /* high dwords of flat addresses: LDS, private memory */
#define QUEUE_SCRATCH      136u
#define TMPRING_WAVE(size) (((size) >> 12 & 0x1fff) * 1024) /* COMPUTE_TMPRING_SIZE, WAVESIZE */

static int read_scratch(const struct sim_gcn_env *env, u64 queue, struct sim_gcn_scratch *scratch)
{
	struct queue_scratch from;
	u32 apertures[2];
	int ret = env->read(env->arg, queue + QUEUE_SCRATCH, &from, sizeof(from));

	if (ret == 0)
		ret = env->read(env->arg, queue + QUEUE_APERTURES, apertures, sizeof(apertures));
	if (ret < 0)
		return ret;
	memcpy(scratch->resource, from.resource, sizeof(from.resource));
	scratch->address = from.address;
	scratch->bytes = from.resource[2]; /* NUM_RECORDS */
	scratch->wave_bytes = TMPRING_WAVE(from.tmpring);
	scratch->shared_base = apertures[0];
	scratch->private_base = apertures[1];
	return 0;
}

int sim_gcn_kernel_has_scratch(const struct sim_gcn_env *env, const struct aql_dispatch *packet,
			       u64 rptr_address)
{
	struct sim_gcn_scratch scratch;
	int ret = read_scratch(env, rptr_address - SIM_GCN_QUEUE_READ, &scratch);

	return ret < 0 ? ret : packet->private_bytes <= scratch.wave_bytes / SIM_GCN_LANES;
}

int sim_gcn_kernel_begin(struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env,
			 const struct aql_dispatch *packet, u64 at, u64 rptr_address)
{
	struct sim_gcn_dispatch gcn = { .kernarg = packet->kernarg,
					.packet = at,
					.queue = rptr_address - SIM_GCN_QUEUE_READ,
					.lds_bytes = packet->group_bytes };
	u32 i;
	int ret;

	if (packet->private_bytes) {
		ret = read_scratch(env, gcn.queue, &gcn.scratch);
		if (ret < 0)
			return ret;
	}
	ret = env->read(env->arg, packet->kernel, gcn.descriptor, sizeof(gcn.descriptor));
	if (ret < 0)
		return ret;
	gcn.entry = packet->kernel +
		    (gcn.descriptor[ENTRY_OFFSET] | (u64)gcn.descriptor[ENTRY_OFFSET + 1] << 32);
	for (i = 0; i < 3; i++) {
		gcn.grid[i] = packet->grid[i];
		gcn.workgroup[i] = packet->workgroup[i];
	}
	ret = sim_gcn_begin(&gcn, env);
	return ret < 0 ? ret : allocate(kernel, &gcn);
}

int sim_gcn_kernel_run(struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env, u32 steps)
{
	int ret = sim_gcn_run(&kernel->gcn, &kernel->group, env, steps);

	if (ret)
		sim_gcn_kernel_done(kernel);
	return ret;
}

static u64 checksum_of(const void *data, u32 bytes)
{
	const u32 *words = data;
	u64 hash = 0xcbf29ce484222325ull;
	u32 i;

	for (i = 0; i < bytes / 4; i++)
		hash = (hash ^ words[i]) * 0x100000001b3ull;
	return hash;
}

/* A part of the area in the model's memory; the LDS follows the waves. */
struct part {
	void *data;
	u64 address;
	u32 bytes;
};

static struct part part_at(const struct sim_gcn_kernel *kernel, u64 area, u32 i)
{
	struct part part = { .address = area + (u64)i * sizeof(struct sim_gcn_wave),
			     .data = kernel->group.lds,
			     .bytes = SIM_GCN_LDS_BYTES };

	if (i < kernel->gcn.num_waves) {
		part.data = &kernel->group.waves[i];
		part.bytes = sizeof(struct sim_gcn_wave);
	}
	return part;
}

u64 sim_gcn_kernel_bytes(const struct sim_gcn_kernel *kernel)
{
	return (u64)kernel->gcn.num_waves * sizeof(struct sim_gcn_wave) + SIM_GCN_LDS_BYTES;
}

int sim_gcn_kernel_save(const struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env,
			u64 area, struct sim_gcn_saved *saved)
{
	int ret = 0;
	u32 i;

	saved->magic = MAGIC;
	saved->area = area;
	saved->gcn = kernel->gcn;
	for (i = 0; ret == 0 && i <= kernel->gcn.num_waves; i++) {
		struct part part = part_at(kernel, area, i);

		saved->checksum[i] = checksum_of(part.data, part.bytes);
		ret = env->write(env->arg, part.address, part.data, part.bytes);
	}
	return ret;
}

static int load_parts(struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env,
		      const struct sim_gcn_saved *saved, const char **ret_why)
{
	u32 i;

	for (i = 0; i <= saved->gcn.num_waves; i++) {
		struct part part = part_at(kernel, saved->area, i);
		int ret = env->read(env->arg, part.address, part.data, part.bytes);

		if (ret < 0)
			return ret;
		if (checksum_of(part.data, part.bytes) != saved->checksum[i]) {
			*ret_why = i < saved->gcn.num_waves ? "registers" : "LDS";
			return -EINVAL;
		}
	}
	return 0;
}

int sim_gcn_kernel_load(struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env, u64 area,
			const struct sim_gcn_saved *saved, const char **ret_why)
{
	int ret;

	if (saved->magic != MAGIC || saved->gcn.num_waves > SIM_GCN_MAX_WAVES) {
		*ret_why = "the control stack";
		return -EINVAL;
	}
	if (saved->area != area) {
		*ret_why = "their place";
		return -EINVAL;
	}
	ret = allocate(kernel, &saved->gcn);
	if (ret == 0)
		ret = load_parts(kernel, env, saved, ret_why);
	if (ret < 0)
		sim_gcn_kernel_done(kernel);
	return ret;
}
