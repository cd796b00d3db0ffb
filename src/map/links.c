// SPDX-License-Identifier: GPL-2.0-only
/* Turns a topology into what the mapper asks for. Tells PCIe, XGMI and CPU links apart; compares
 * nothing and decides nothing. */
#include "map/links.h"

#include <errno.h>
#include <stdlib.h>

static int compare_nodes(const void *left, const void *right)
{
	const struct topology_node *a = *(const struct topology_node *const *)left;
	const struct topology_node *b = *(const struct topology_node *const *)right;

	if (a->node_id != b->node_id)
		return a->node_id < b->node_id ? -1 : 1;
	/* Only an image that is damaged has a node twice: any order will do,
	 * but always the same. */
	return a < b ? -1 : a > b;
}

/* GPU_SET_MAX: no GPU that counts. */
static size_t find_gpu(const struct link_graph *machine, uint32_t node_id)
{
	size_t low = 0, high = machine->num_gpus;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (machine->gpus[middle]->node_id < node_id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < machine->num_gpus && machine->gpus[low]->node_id == node_id)
		return low;
	return GPU_SET_MAX;
}

static void note_xgmi_links(struct link_graph *machine, size_t gpu)
{
	const struct topology_node *node = machine->gpus[gpu];

	for (size_t i = 0; i < node->num_links; i++) {
		size_t peer = find_gpu(machine, node->links[i].node_to);

		if (node->links[i].type != LINK_XGMI || peer == GPU_SET_MAX || peer == gpu)
			continue;
		set_add(&machine->xgmi[gpu], peer);
		set_add(&machine->xgmi[peer], gpu);
	}
}

static const struct topology_node *cpu_at(const struct topology *topology,
					  const struct topology_link *link)
{
	const struct topology_node *node;

	if (link->type != LINK_PCIE && link->type != LINK_XGMI)
		return NULL;
	node = topology_find_node(topology, link->node_to);
	return node && !node->gpu_id && node->cpu_cores_count ? node : NULL;
}

static int16_t region_index(struct link_graph *machine, const struct topology_node *cpu)
{
	size_t i;

	for (i = 0; i < machine->regions.count; i++) {
		if (machine->region_cpu[i] == cpu)
			return (int16_t)i;
	}
	/* At most one a GPU, so there is room. */
	machine->region_cpu[machine->regions.count++] = cpu;
	return (int16_t)i;
}

/* The CPU link is the one with the lowest weight, then to the lowest node. */
static void note_cpu_link(struct link_graph *machine, size_t gpu)
{
	const struct topology_node *node = machine->gpus[gpu];
	const struct topology_node *nearest = NULL;
	const struct topology_link *best = NULL;

	for (size_t i = 0; i < node->num_links; i++) {
		const struct topology_link *link = &node->links[i];
		const struct topology_node *cpu = cpu_at(machine->topology, link);

		if (!cpu)
			continue;
		if (!best || link->weight < best->weight ||
		    (link->weight == best->weight && link->node_to < best->node_to)) {
			best = link;
			nearest = cpu;
		}
	}
	machine->regions.of[gpu] = (int16_t)(best ? region_index(machine, nearest) : NO_BLOCK);
	machine->xgmi_to_cpu[gpu] = best && best->type == LINK_XGMI;
	if (best)
		set_add(&machine->regions.members[machine->regions.of[gpu]], gpu);
}

int links_init(const struct topology *topology, struct link_graph *ret_machine)
{
	struct link_graph *machine = ret_machine;

	*machine = (struct link_graph){ .topology = topology };
	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *node = &topology->nodes[i];

		if (!node->gpu_id || node->unreachable)
			continue;
		if (machine->num_gpus == GPU_SET_MAX)
			return -E2BIG;
		machine->gpus[machine->num_gpus++] = node;
	}
	if (machine->num_gpus)
		qsort(machine->gpus, machine->num_gpus, sizeof(machine->gpus[0]), compare_nodes);
	for (size_t i = 0; i < machine->num_gpus; i++) {
		note_xgmi_links(machine, i);
		note_cpu_link(machine, i);
	}
	return 0;
}

const struct topology_node *links_find_repeated(const struct link_graph *machine)
{
	for (size_t i = 0; i < machine->num_gpus; i++) {
		for (size_t j = 0; j < i; j++) {
			if (machine->gpus[i]->gpu_id == machine->gpus[j]->gpu_id)
				return machine->gpus[i];
		}
	}
	return NULL;
}

bool links_is_unique(const struct link_graph *machine, size_t gpu)
{
	uint64_t unique_id = machine->gpus[gpu]->unique_id;

	for (size_t i = 0; i < machine->num_gpus; i++) {
		if (i != gpu && machine->gpus[i]->unique_id == unique_id)
			return false;
	}
	return unique_id != 0;
}

bool links_cpu_link_serves(const struct link_graph *there, size_t saved,
			   const struct link_graph *here, size_t local)
{
	if (there->regions.of[saved] == NO_BLOCK)
		return true;
	return here->regions.of[local] != NO_BLOCK &&
	       (!there->xgmi_to_cpu[saved] || here->xgmi_to_cpu[local]);
}

static void add_block(struct partition *partition, const struct gpu_set *members)
{
	set_for_each (i, members)
		partition->of[i] = (int16_t)partition->count;
	partition->members[partition->count++] = *members;
}

static void partition_init(struct partition *partition)
{
	*partition = (struct partition){ 0 };
	for (size_t i = 0; i < GPU_SET_MAX; i++)
		partition->of[i] = NO_BLOCK;
}

/* All of @gpus that links lead to from GPU @first. */
static struct gpu_set linked_with(const struct link_graph *machine, const struct gpu_set *gpus,
				  size_t first)
{
	struct gpu_set found = set_of(first), fresh = found;

	while (!set_is_empty(&fresh)) {
		struct gpu_set next = { 0 };

		set_for_each (i, &fresh)
			set_add_all(&next, &machine->xgmi[i]);
		next = set_and(&next, gpus);
		fresh = set_without(&next, &found);
		set_add_all(&found, &fresh);
	}
	return found;
}

void links_hives(const struct link_graph *machine, const struct gpu_set *gpus,
		 struct partition *ret_hives)
{
	struct gpu_set left = *gpus;

	partition_init(ret_hives);
	set_for_each (i, &left) {
		struct gpu_set hive = linked_with(machine, gpus, i);

		left = set_without(&left, &hive);
		if (set_count(&hive) > 1)
			add_block(ret_hives, &hive);
	}
}

void links_numa_groups(const struct link_graph *machine, const struct gpu_set *gpus,
		       struct partition *ret_regions)
{
	partition_init(ret_regions);
	for (size_t i = 0; i < machine->regions.count; i++) {
		struct gpu_set region = set_and(&machine->regions.members[i], gpus);

		if (!set_is_empty(&region))
			add_block(ret_regions, &region);
	}
}
