/* SPDX-License-Identifier: GPL-2.0-only */
/* The question that the mapper answers: both machines, the options, and what comparing GPUs one by
 * one has shown. map.c fills it, and the other files read it. */
#ifndef AMDGPU_PLUGIN_MAP_MAP_INPUT_H
#define AMDGPU_PLUGIN_MAP_MAP_INPUT_H

#include "criu/options.h"
#include "map/links.h"

struct map_input {
	struct link_graph saved;
	struct link_graph local;
	const struct map_options *options;
	/* By saved GPU, sets of local GPUs: those that fit, those that are the same device, the one
	 * with the gpu_id by which the process knows the saved GPU, and the partitions with its
	 * number. The candidates of a pinned GPU are that one GPU. */
	uint64_t candidates[GPU_SET_MAX];
	uint64_t same_device[GPU_SET_MAX];
	uint64_t same_id[GPU_SET_MAX];
	uint64_t same_partition[GPU_SET_MAX];
	/* By saved GPU: the local GPU that the device-map demands, or no GPU. */
	uint64_t pinned[GPU_SET_MAX];
	/* By saved GPU: the local GPU of the mapping, if there is one. */
	uint16_t local_of[GPU_SET_MAX];
	/* By saved GPU: the saved GPUs of its PCI device, and of others, with which it shares a BO.
	 * They keep this relation by all rules. */
	uint64_t sharing_siblings[GPU_SET_MAX];
	uint64_t sharing_strangers[GPU_SET_MAX];
	/* The pairs of the device-map may name saved GPUs of other processes. */
	bool pairs_for_others;
	/* NULL: no other process is restored. */
	const struct map_tree *tree;
	/* The mapping of the tree, which this process follows, or NULL if the process is mapped
	 * alone. */
	const struct gpu_map *all;
	/* Present GPUs that other processes have are no candidates. */
	bool avoid_claims;
};

#endif
