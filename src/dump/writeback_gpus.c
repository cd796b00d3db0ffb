// SPDX-License-Identifier: GPL-2.0-only
/* Chooses how much memory each GPU of a job gets. writeback.c takes it. */
#include "dump/writeback_gpus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/pool.h"
#include "criu/log.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "pause/kfd_files.h"

/* For the unused ends of parts, and for what the job allocates until its queues stop. */
#define ROOM_TO_GROW(bytes) ((bytes) / 32 + (32u << 20))

/* The part of a GTT that stays free for jobs that run meanwhile. */
#define GTT_MARGIN(bytes) ((bytes) / 8)

/* Marks the GPUs of the topology that the job has open. */
static int mark_gpus(pid_t top, const struct topology *topology, bool *marks)
{
	_cleanup_(pid_list_done) struct pid_list tasks = { 0 };
	int ret = top ? proc_list_tree(top, &tasks) : 0;

	if (ret < 0)
		return ret;
	for (size_t i = 0; !top && i < topology->num_nodes; i++)
		marks[i] = topology->nodes[i].gpu_id;
	return top ? kfd_files_find_gpus(&tasks, topology, marks) : 0;
}

/* The marked partitions of the card of @gpu. They share its memory. */
static unsigned int count_partitions(const struct topology *topology, const bool *marks,
				     const struct topology_node *gpu)
{
	unsigned int count = 0;

	for (size_t i = 0; i < topology->num_nodes; i++)
		count += marks[i] &&
			 topology_pci_device(&topology->nodes[i]) == topology_pci_device(gpu);
	return count;
}

/* Memory for no contents would only delay the dump. */
static uint64_t limit(uint32_t minor, const struct render_memory *memory)
{
	const uint64_t contents = memory->vram_used + memory->gtt_used;
	const uint64_t wanted = contents + ROOM_TO_GROW(contents);
	const uint64_t taken = memory->gtt_used + GTT_MARGIN(memory->gtt_size);
	const uint64_t room = taken < memory->gtt_size ? memory->gtt_size - taken : 0;

	if (room < contents)
		log_warn("option dump-memory: renderD%u: %" PRIu64 " MiB for contents of %" PRIu64
			 " MiB, because more would evict buffers of jobs that run from its GTT",
			 minor, room >> 20, contents >> 20);
	return wanted < room ? wanted : room;
}

/* Without the GPUs whose driver does not tell their memory. */
static size_t limit_all(const struct topology *topology, const bool *marks,
			struct pool_share *shares)
{
	struct render_memory memory;
	size_t count = 0;

	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *gpu = &topology->nodes[i];

		if (!marks[i] || render_node_find_memory(gpu->drm_render_minor, &memory) < 0)
			continue;
		shares[count++] = (struct pool_share){
			.minor = gpu->drm_render_minor,
			.bytes = limit(gpu->drm_render_minor, &memory) /
				 count_partitions(topology, marks, gpu),
		};
	}
	return count;
}

/* Each share becomes smaller by the same factor, so that all have @bytes together. */
static void scale(struct pool_share *shares, size_t count, uint64_t bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += shares[i].bytes;
	for (size_t i = 0; sum > bytes && i < count; i++)
		shares[i].bytes = (uint64_t)((long double)shares[i].bytes / sum * bytes);
}

int writeback_gpus_choose(pid_t top, uint64_t bytes, struct pool_share **ret_shares,
			  size_t *ret_count)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	_cleanup_free_ struct pool_share *shares = NULL;
	_cleanup_free_ bool *marks = NULL;
	int ret = topology_read(TOPOLOGY_SYSFS, &topology);

	if (ret < 0)
		return ret;
	marks = calloc(topology.num_nodes + 1, sizeof(*marks));
	shares = calloc(topology.num_nodes + 1, sizeof(*shares));
	ret = marks && shares ? mark_gpus(top, &topology, marks) : -ENOMEM;
	if (ret < 0)
		return ret;
	*ret_count = limit_all(&topology, marks, shares);
	scale(shares, *ret_count, bytes);
	*ret_shares = take_ptr(&shares);
	return 0;
}
