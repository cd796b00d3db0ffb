// SPDX-License-Identifier: GPL-2.0-only
/* Builds the graph of links from a topology. To compare the GPUs themselves call
 * gpu_rules_compare(). */
#include "map/links.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"

static int compare_nodes(const void *left, const void *right)
{
	const struct topology_node *a = *(const struct topology_node *const *)left;
	const struct topology_node *b = *(const struct topology_node *const *)right;

	/* Only a damaged image repeats a node: any order is right if it is always the same. */
	return ORDER(a->node_id, b->node_id) ?: ORDER(a, b);
}

size_t links_find_node(const struct link_graph *graph, uint32_t node_id)
{
	for (size_t i = 0; i < graph->num_gpus; i++) {
		if (graph->gpus[i]->node_id == node_id)
			return i;
	}
	return GPU_SET_MAX;
}

static void add_xgmi_links(struct link_graph *graph, size_t gpu)
{
	const struct topology_node *node = graph->gpus[gpu];

	for (size_t i = 0; i < node->num_links; i++) {
		size_t peer = links_find_node(graph, node->links[i].node_to);

		if (node->links[i].type != LINK_XGMI || peer == GPU_SET_MAX || peer == gpu)
			continue;
		graph->xgmi[gpu] |= set_of(peer);
		graph->xgmi[peer] |= set_of(gpu);
	}
}

static void add_siblings(struct link_graph *graph, size_t gpu)
{
	const uint64_t device = topology_pci_device(graph->gpus[gpu]);

	for (size_t i = 0; i < graph->num_gpus; i++) {
		if (topology_pci_device(graph->gpus[i]) != device)
			graph->strangers[gpu] |= set_of(i);
		else if (i != gpu)
			graph->siblings[gpu] |= set_of(i);
	}
}

/* The CPU node at the other end of @link, or NULL. */
static const struct topology_node *cpu_of_link(const struct topology *topology,
					       const struct topology_link *link)
{
	const struct topology_node *node;

	if (link->type != LINK_PCIE && link->type != LINK_XGMI)
		return NULL;
	node = topology_find_node(topology, link->node_to);
	return node && !node->gpu_id && node->cpu_cores_count ? node : NULL;
}

static int16_t numa_group_of(struct link_graph *graph, const struct topology_node *cpu)
{
	size_t i;

	for (i = 0; i < graph->numa_groups.count; i++) {
		if (graph->numa_cpu[i] == cpu)
			return (int16_t)i;
	}
	/* Each GPU adds one group at most, so the array is long enough. */
	graph->numa_cpu[graph->numa_groups.count++] = cpu;
	return (int16_t)i;
}

/* Of several links to CPU nodes, the one with the lowest weight counts, then the one to the lowest
 * node. */
static void add_cpu_link(struct link_graph *graph, size_t gpu)
{
	const struct topology_node *node = graph->gpus[gpu];
	const struct topology_node *nearest = NULL;
	const struct topology_link *best = NULL;

	for (size_t i = 0; i < node->num_links; i++) {
		const struct topology_link *link = &node->links[i];
		const struct topology_node *cpu = cpu_of_link(graph->topology, link);

		if (!cpu)
			continue;
		if (!best || link->weight < best->weight ||
		    (link->weight == best->weight && link->node_to < best->node_to)) {
			best = link;
			nearest = cpu;
		}
	}
	graph->numa_groups.of[gpu] = (int16_t)(best ? numa_group_of(graph, nearest) : NO_GROUP);
	graph->xgmi_to_cpu[gpu] = best && best->type == LINK_XGMI;
	if (best)
		graph->numa_groups.members[graph->numa_groups.of[gpu]] |= set_of(gpu);
}

int links_init(const struct topology *topology, struct link_graph *ret_graph)
{
	struct link_graph *graph = ret_graph;

	*graph = (struct link_graph){ .topology = topology };
	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *node = &topology->nodes[i];

		if (!node->gpu_id || node->unreachable)
			continue;
		if (graph->num_gpus == GPU_SET_MAX)
			return -E2BIG;
		graph->gpus[graph->num_gpus++] = node;
	}
	qsort(graph->gpus, graph->num_gpus, sizeof(graph->gpus[0]), compare_nodes);
	for (size_t i = 0; i < graph->num_gpus; i++) {
		add_xgmi_links(graph, i);
		add_cpu_link(graph, i);
		add_siblings(graph, i);
	}
	return 0;
}

const struct topology_node *links_find_repeated(const struct link_graph *graph)
{
	for (size_t i = 0; i < graph->num_gpus; i++) {
		for (size_t j = 0; j < i; j++) {
			if (graph->gpus[i]->gpu_id == graph->gpus[j]->gpu_id)
				return graph->gpus[i];
		}
	}
	return NULL;
}

bool links_is_unique(const struct link_graph *graph, size_t gpu)
{
	uint64_t unique_id = graph->gpus[gpu]->unique_id;

	for (size_t i = 0; i < graph->num_gpus; i++) {
		if (i != gpu && graph->gpus[i]->unique_id == unique_id)
			return false;
	}
	return unique_id != 0;
}

static void add_group(struct gpu_groups *groups, uint64_t members)
{
	set_for_each (i, members)
		groups->of[i] = (int16_t)groups->count;
	groups->members[groups->count++] = members;
}

static void groups_init(struct gpu_groups *groups)
{
	*groups = (struct gpu_groups){ 0 };
	for (size_t i = 0; i < GPU_SET_MAX; i++)
		groups->of[i] = NO_GROUP;
}

/* All of @gpus that XGMI links connect with GPU @first. */
static uint64_t find_connected(const struct link_graph *graph, uint64_t gpus, size_t first)
{
	uint64_t found = set_of(first), fresh = found;

	while (fresh) {
		uint64_t peers = 0;

		set_for_each (i, fresh)
			peers |= graph->xgmi[i];
		fresh = peers & gpus & ~found;
		found |= fresh;
	}
	return found;
}

void links_hives(const struct link_graph *graph, uint64_t gpus, struct gpu_groups *ret_hives)
{
	uint64_t rest = gpus;

	groups_init(ret_hives);
	set_for_each (i, rest) {
		uint64_t hive = find_connected(graph, gpus, i);

		rest &= ~hive;
		if (set_count(hive) > 1)
			add_group(ret_hives, hive);
	}
}

void links_numa_groups(const struct link_graph *graph, uint64_t gpus, struct gpu_groups *ret_groups)
{
	groups_init(ret_groups);
	for (size_t i = 0; i < graph->numa_groups.count; i++) {
		uint64_t group = graph->numa_groups.members[i] & gpus;

		if (group)
			add_group(ret_groups, group);
	}
}
