/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPUs of a topology as a graph: numbered in node order, with their XGMI links and CPU links.
 * For comparing properties of GPUs call gpu_rules_compare(). */
#ifndef AMDGPU_PLUGIN_MAP_LINKS_H
#define AMDGPU_PLUGIN_MAP_LINKS_H

#include "amdgpu_plugin_topology.h"
#include "map/gpu_set.h"

#define NO_GROUP (-1)

/* Disjoint groups of GPUs of one machine. */
struct gpu_groups {
	/* By GPU: its group, or NO_GROUP. */
	int16_t of[GPU_SET_MAX];
	/* By group. */
	uint64_t members[GPU_SET_MAX];
	size_t count;
};

struct link_graph {
	const struct topology *topology;
	/* By GPU, in ascending order of node_id; borrowed from the topology. */
	const struct topology_node *gpus[GPU_SET_MAX];
	size_t num_gpus;
	/* By GPU: its XGMI peers. A link in one direction counts for both: the device cgroup may
	 * hide the other. */
	uint64_t xgmi[GPU_SET_MAX];
	/* By GPU: the other partitions of its PCI device, and the GPUs of other PCI devices. */
	uint64_t siblings[GPU_SET_MAX];
	uint64_t strangers[GPU_SET_MAX];
	/* GPUs by the CPU node of their CPU link, and that node by group. */
	struct gpu_groups numa_groups;
	const struct topology_node *numa_cpu[GPU_SET_MAX];
	/* By GPU: its CPU link is an XGMI link. */
	bool xgmi_to_cpu[GPU_SET_MAX];
};

/* Leaves out GPUs that are marked unreachable. -E2BIG: more GPUs than GPU_SET_MAX. */
int links_init(const struct topology *topology, struct link_graph *ret_graph);

/* The index of the GPU with @node_id, or GPU_SET_MAX. */
size_t links_find_node(const struct link_graph *graph, uint32_t node_id);

/* The first GPU, in node order, with the gpu_id of an earlier GPU, or NULL if all differ. */
const struct topology_node *links_find_repeated(const struct link_graph *graph);

/* Whether the GPU has a unique_id that no other GPU of the machine has. */
bool links_is_unique(const struct link_graph *graph, size_t gpu);

/* Groups those of @gpus that XGMI links connect, directly or through others of @gpus. A GPU without
 * XGMI link is in no group. */
void links_hives(const struct link_graph *graph, uint64_t gpus, struct gpu_groups *ret_hives);
/* Groups those of @gpus that have a CPU link, by its CPU node. */
void links_numa_groups(const struct link_graph *graph, uint64_t gpus,
		       struct gpu_groups *ret_groups);

#endif
