/* SPDX-License-Identifier: GPL-2.0-only */
/* A topology as the mapper sees it: the GPUs that count, numbered in node order, which of them are
 * linked by XGMI, and at which CPU node each is attached. */
#ifndef AMDGPU_PLUGIN_MACHINE_H
#define AMDGPU_PLUGIN_MACHINE_H

#include "amdgpu_plugin_gpu_set.h"
#include "amdgpu_plugin_topology.h"

#define NO_REGION (-1)

struct machine {
	const struct topology *topology;
	/* By GPU, in ascending order of node_id; borrowed from the topology. */
	const struct topology_node *gpus[GPU_SET_MAX];
	size_t num_gpus;
	/* One direction is enough for a pair: the other end may be hidden from the reader. */
	struct gpu_set xgmi[GPU_SET_MAX];
	/* The CPU node that the GPU's CPU link leads to, as index of regions[], or NO_REGION; and whether
	 * that link is XGMI. */
	int16_t region_of[GPU_SET_MAX];
	bool xgmi_to_cpu[GPU_SET_MAX];
	/* By region: its CPU node and the GPUs there. */
	const struct topology_node *regions[GPU_SET_MAX];
	struct gpu_set members[GPU_SET_MAX];
	size_t num_regions;
};

/* -E2BIG: more GPUs than GPU_SET_MAX. */
int machine_init(const struct topology *topology, struct machine *ret_machine);

/* The first GPU, in node order, whose gpu_id an earlier one has too; NULL: none. */
const struct topology_node *machine_find_repeated(const struct machine *machine);

/* The GPU has a unique_id that no other GPU of the machine has. */
bool machine_is_unique(const struct machine *machine, size_t gpu);

#endif
