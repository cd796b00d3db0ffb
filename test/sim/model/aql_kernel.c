// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel that an AQL queue has dispatched: what the interpreter of GPU code needs of a queue.
 * Where its waves are saved is what KFD says of a queue (kfd_mqd_manager_v9.c, update_mqd(),
 * Linux 6.12: cp_hqd_ctx_save_base_addr, cp_hqd_cntl_stack_size and cp_hqd_wg_state_offset): state
 * of the waves lies in the queue's area in user memory, behind the room for the control stack, and
 * the control stack with the MQD in the kernel. */
#include "aql.h"

#define GFX90A 90010u

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

int sim_aql_run_kernel(struct sim_queue *queue, const struct sim_client *client,
		       const struct aql_dispatch *packet, u32 *steps)
{
	u32 version = queue->pdd->gpu->gfx_target_version, most = *steps;
	u64 at = queue->ring_addr + queue->rptr * AQL_PACKET_BYTES % queue->ring_size;
	struct sim_gcn_env env = env_of(client);
	int ret;

	if (version != GFX90A) {
		sim_violation(client->sim,
			      "%s: a kernel for a GPU of version %u, whose code is not interpreted",
			      client->who, version);
		return -EINVAL;
	}
	if (!queue->kernel.group.waves) {
		ret = sim_gcn_kernel_begin(&queue->kernel, &env, packet, at, queue->rptr_addr);
		if (ret < 0)
			return ret;
	}
	*steps = 0;
	return sim_gcn_kernel_run(&queue->kernel, &env, most);
}

static u64 area_of(const struct sim_queue *queue)
{
	return queue->cwsr_addr + queue->mqd_ctl_stack_size;
}

static int check_room(const struct sim_queue *queue, const struct sim_client *client)
{
	u64 bytes = sim_gcn_kernel_bytes(&queue->kernel);

	if (queue->ctl_stack && queue->ctl_stack_size >= sizeof(struct sim_gcn_saved) &&
	    queue->cwsr_size >= queue->mqd_ctl_stack_size + bytes)
		return 0;
	sim_violation(client->sim,
		      "%s: no room for %" SIM_PRIu64 " bytes of waves in an area of %u, or for them"
		      " in a control stack of %u",
		      client->who, bytes, queue->cwsr_size, queue->ctl_stack_size);
	return -ENOMEM;
}

int sim_aql_save(struct sim_queue *queue, const struct sim_client *client)
{
	struct sim_gcn_saved saved = { .index = queue->rptr, .began = queue->began };
	struct sim_gcn_env env = env_of(client);
	int ret;

	if (!queue->kernel.group.waves)
		return 0;
	ret = check_room(queue, client);
	if (ret == 0)
		ret = sim_gcn_kernel_save(&queue->kernel, &env, area_of(queue), &saved);
	sim_gcn_kernel_done(&queue->kernel);
	if (ret < 0)
		return ret;
	memcpy(queue->ctl_stack, &saved, sizeof(saved));
	queue->saved = true;
	return 0;
}

static int refuse(const struct sim_queue *queue, const struct sim_client *client, const char *what)
{
	sim_violation(client->sim,
		      "%s: the waves of packet %" SIM_PRIu64 " are not what was saved: %s",
		      client->who, queue->rptr, what);
	return -EINVAL;
}

int sim_aql_load(struct sim_queue *queue, const struct sim_client *client)
{
	struct sim_gcn_env env = env_of(client);
	struct sim_gcn_saved saved;
	const char *why = NULL;
	int ret;

	if (!queue->saved)
		return 0;
	queue->saved = false;
	if (!queue->ctl_stack || queue->ctl_stack_size < sizeof(saved))
		return refuse(queue, client, "the control stack");
	memcpy(&saved, queue->ctl_stack, sizeof(saved));
	queue->began = saved.began;
	ret = sim_gcn_kernel_load(&queue->kernel, &env, area_of(queue), &saved, &why);
	if (ret == 0 && saved.index != queue->rptr) {
		sim_gcn_kernel_done(&queue->kernel);
		why = "the packet";
	}
	return why ? refuse(queue, client, why) : ret;
}
