/* SPDX-License-Identifier: GPL-2.0-only */
/* A topology as the mapper sees it: the GPUs that count, numbered in node order, which of them are
 * linked by XGMI, and at which CPU node each is attached. */
#ifndef AMDGPU_PLUGIN_MAP_LINKS_H
#define AMDGPU_PLUGIN_MAP_LINKS_H

#include "amdgpu_plugin_topology.h"
#include "map/gpu_set.h"

#define NO_BLOCK (-1)

/* Some GPUs of a machine in disjoint blocks. */
struct partition {
	/* By GPU: its block, or NO_BLOCK. */
	int16_t of[GPU_SET_MAX];
	/* By block. */
	struct gpu_set members[GPU_SET_MAX];
	size_t count;
};

struct link_graph {
	const struct topology *topology;
	/* By GPU, in ascending order of node_id; borrowed from the topology. */
	const struct topology_node *gpus[GPU_SET_MAX];
	size_t num_gpus;
	/* One direction is enough for a pair: the other end may be hidden from the reader. */
	struct gpu_set xgmi[GPU_SET_MAX];
	/* By the CPU node that a GPU's CPU link leads to. */
	struct partition regions;
	const struct topology_node *region_cpu[GPU_SET_MAX];
	/* By GPU: its CPU link is XGMI. */
	bool xgmi_to_cpu[GPU_SET_MAX];
};

/* -E2BIG: more GPUs than GPU_SET_MAX. */
int links_init(const struct topology *topology, struct link_graph *ret_machine);

/* The first GPU, in node order, whose gpu_id an earlier one has too; NULL: none. */
const struct topology_node *links_find_repeated(const struct link_graph *machine);

/* The GPU has a unique_id that no other GPU of the machine has. */
bool links_is_unique(const struct link_graph *machine, size_t gpu);

/* Whether GPU @local here has the CPU link that GPU @saved of @there asks for: any where it has
 * none, an XGMI one where it has such. */
bool links_cpu_link_serves(const struct link_graph *there, size_t saved,
			   const struct link_graph *here, size_t local);

/* Those of @gpus that are linked by XGMI, directly or by others of @gpus, in blocks
 * of two and more. */
void links_hives(const struct link_graph *machine, const struct gpu_set *gpus,
		 struct partition *ret_hives);
/* Those of @gpus that have a CPU link, by where it leads. */
void links_numa_groups(const struct link_graph *machine, const struct gpu_set *gpus,
		       struct partition *ret_regions);

#endif
