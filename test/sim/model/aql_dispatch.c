// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel that an AQL queue has dispatched: what the interpreter of GPU code needs of a queue. */
#include "aql.h"

#define GFX90A       90010u
#define ENTRY_OFFSET 4u   /* dwords of the descriptor: where the code begins, from there */
#define QUEUE_READ   128u /* of amd_queue_t (amd_hsa_queue.h), where its read index lies */

static int env_read(void *arg, u64 va, void *data, u32 bytes)
{
	return sim_client_read(arg, va, data, bytes);
}

static int env_write(void *arg, u64 va, const void *data, u32 bytes)
{
	return sim_client_write(arg, va, data, bytes);
}

static int env_exchange(void *arg, u64 va, u32 bytes, u64 *expected, u64 desired)
{
	return sim_client_exchange(arg, va, bytes, expected, desired);
}

static u64 env_now(void *arg)
{
	(void)arg;
	return sim_gpu_clock();
}

static void env_complain(void *arg, const char *text)
{
	const struct sim_client *client = arg;

	sim_violation(client->sim, "%s: %s", client->who, text);
}

static struct sim_gcn_env env_of(const struct sim_client *client)
{
	return (struct sim_gcn_env){
		.arg = (void *)(uintptr_t)client,
		.read = env_read,
		.write = env_write,
		.exchange = env_exchange,
		.compute = sim_gcn_float,
		.now = env_now,
		.complain = env_complain,
	};
}

void sim_aql_drop(struct sim_queue *queue)
{
	if (!queue->dispatch)
		return;
	sim_os_free(queue->dispatch->group.waves);
	sim_os_free(queue->dispatch->group.lds);
	sim_os_free(queue->dispatch);
	queue->dispatch = NULL;
}

int sim_aql_allocate(struct sim_queue *queue, const struct sim_gcn_dispatch *gcn)
{
	struct sim_aql_dispatch *dispatch = sim_os_alloc(sizeof(*dispatch));

	if (!dispatch)
		return -ENOMEM;
	dispatch->gcn = *gcn;
	dispatch->group.waves = sim_os_alloc((u64)gcn->num_waves * sizeof(*dispatch->group.waves));
	dispatch->group.lds = sim_os_alloc(SIM_GCN_LDS_BYTES);
	queue->dispatch = dispatch;
	return dispatch->group.waves && dispatch->group.lds ? 0 : -ENOMEM;
}

static int prepare(const struct sim_queue *queue, const struct sim_client *client,
		   const struct sim_aql_kernel *kernel, struct sim_gcn_dispatch *gcn)
{
	struct sim_gcn_env env = env_of(client);
	int ret;

	ret = sim_client_read(client, kernel->object, gcn->descriptor, sizeof(gcn->descriptor));
	if (ret < 0)
		return ret;
	gcn->entry = kernel->object +
		     (gcn->descriptor[ENTRY_OFFSET] | (u64)gcn->descriptor[ENTRY_OFFSET + 1] << 32);
	gcn->kernarg = kernel->kernarg;
	gcn->packet = kernel->packet;
	gcn->queue = queue->rptr_addr - QUEUE_READ;
	gcn->lds_bytes = kernel->group_bytes;
	memcpy(gcn->grid, kernel->grid, sizeof(gcn->grid));
	memcpy(gcn->workgroup, kernel->workgroup, sizeof(gcn->workgroup));
	return sim_gcn_begin(gcn, &env);
}

int sim_aql_begin(struct sim_queue *queue, const struct sim_client *client,
		  const struct sim_aql_kernel *kernel)
{
	u32 version = queue->pdd->gpu->gfx_target_version;
	struct sim_gcn_dispatch gcn;
	int ret;

	if (version != GFX90A) {
		sim_violation(client->sim,
			      "%s: a kernel for a GPU of version %u, whose code is not interpreted",
			      client->who, version);
		return -EINVAL;
	}
	memset(&gcn, 0, sizeof(gcn));
	ret = prepare(queue, client, kernel, &gcn);
	if (ret == 0)
		ret = sim_aql_allocate(queue, &gcn);
	if (ret < 0)
		sim_aql_drop(queue);
	return ret;
}

int sim_aql_continue(struct sim_queue *queue, const struct sim_client *client, u32 *steps)
{
	struct sim_aql_dispatch *dispatch = queue->dispatch;
	struct sim_gcn_env env = env_of(client);
	int ret = sim_gcn_run(&dispatch->gcn, &dispatch->group, &env, *steps);

	*steps = 0;
	if (ret != 0)
		sim_aql_drop(queue);
	return ret;
}
