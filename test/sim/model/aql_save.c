// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waves of a kernel leave the hardware and come back. Where they are saved is what KFD says of a
 * queue (kfd_mqd_manager_v9.c, update_mqd(), Linux 6.12: cp_hqd_ctx_save_base_addr,
 * cp_hqd_cntl_stack_size and cp_hqd_wg_state_offset): state of the waves lies in the queue's area
 * in user memory, behind the room for the control stack, and the control stack with the MQD in the
 * kernel. What is in both is the model's own: the control stack has the dispatch, and a checksum of
 * each part of the area. */
#include "aql.h"

#define MAGIC 0x5245564153564157ull
#define PARTS (SIM_GCN_MAX_WAVES + 1u) /* the waves and their LDS */

/* The control stack. */
struct saved {
	u64 magic;
	u64 index, began; /* of the packet */
	u64 area;         /* address of the first part */
	u64 checksum[PARTS];
	struct sim_gcn_dispatch gcn;
};

static u64 checksum_of(const void *data, u64 bytes)
{
	const u32 *words = data;
	u64 hash = 0xcbf29ce484222325ull, i;

	for (i = 0; i < bytes / 4; i++)
		hash = (hash ^ words[i]) * 0x100000001b3ull;
	return hash;
}

static u64 area_of(const struct sim_queue *queue)
{
	return queue->cwsr_addr + queue->mqd_ctl_stack_size;
}

/* A part of the area in the model's memory; the LDS follows the waves. */
struct part {
	void *data;
	u64 addr, bytes;
};

static struct part part_at(const struct sim_queue *queue, u32 i)
{
	const struct sim_aql_dispatch *dispatch = queue->dispatch;
	struct part part = { .bytes = sizeof(struct sim_gcn_wave) };

	part.addr = area_of(queue) + i * part.bytes;
	if (i < dispatch->gcn.num_waves) {
		part.data = &dispatch->group.waves[i];
		return part;
	}
	part.data = dispatch->group.lds;
	part.bytes = SIM_GCN_LDS_BYTES;
	return part;
}

static u64 area_bytes(const struct sim_gcn_dispatch *gcn)
{
	return (u64)gcn->num_waves * sizeof(struct sim_gcn_wave) + SIM_GCN_LDS_BYTES;
}

static int check_room(const struct sim_queue *queue, const struct sim_client *client)
{
	u64 bytes = area_bytes(&queue->dispatch->gcn);

	if (queue->ctl_stack && queue->ctl_stack_size >= sizeof(struct saved) &&
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
	struct saved saved = { .magic = MAGIC, .index = queue->rptr, .began = queue->began };
	struct part part;
	u32 i;
	int ret;

	if (!queue->dispatch)
		return 0;
	ret = check_room(queue, client);
	saved.area = area_of(queue);
	saved.gcn = queue->dispatch->gcn;
	for (i = 0; ret == 0 && i <= saved.gcn.num_waves; i++) {
		part = part_at(queue, i);
		saved.checksum[i] = checksum_of(part.data, part.bytes);
		ret = sim_client_write(client, part.addr, part.data, part.bytes);
	}
	sim_aql_drop(queue);
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

static int check_saved(const struct sim_queue *queue, const struct sim_client *client,
		       const struct saved *saved)
{
	if (saved->magic != MAGIC || saved->gcn.num_waves > SIM_GCN_MAX_WAVES)
		return refuse(queue, client, "the control stack");
	if (saved->index != queue->rptr)
		return refuse(queue, client, "the packet");
	return saved->area != area_of(queue) ? refuse(queue, client, "their place") : 0;
}

static int load_parts(struct sim_queue *queue, const struct sim_client *client,
		      const struct saved *saved)
{
	struct part part;
	u32 i;
	int ret;

	for (i = 0; i <= saved->gcn.num_waves; i++) {
		part = part_at(queue, i);
		ret = sim_client_read(client, part.addr, part.data, part.bytes);
		if (ret < 0)
			return ret;
		if (checksum_of(part.data, part.bytes) != saved->checksum[i])
			return refuse(queue, client,
				      i < saved->gcn.num_waves ? "registers" : "LDS");
	}
	return 0;
}

int sim_aql_load(struct sim_queue *queue, const struct sim_client *client)
{
	struct saved saved;
	int ret;

	if (!queue->saved)
		return 0;
	queue->saved = false;
	if (!queue->ctl_stack || queue->ctl_stack_size < sizeof(saved))
		return refuse(queue, client, "the control stack");
	memcpy(&saved, queue->ctl_stack, sizeof(saved));
	ret = check_saved(queue, client, &saved);
	if (ret == 0)
		ret = sim_aql_allocate(queue, &saved.gcn);
	if (ret == 0)
		ret = load_parts(queue, client, &saved);
	if (ret < 0)
		sim_aql_drop(queue);
	queue->began = saved.began;
	return ret;
}
