/* SPDX-License-Identifier: GPL-2.0-only */
/* The question that the mapper answers: both machines, the options, and what comparing GPUs one by
 * one has shown. map.c fills it, device_map.c and explain.c read it. */
#ifndef AMDGPU_PLUGIN_MAP_MAP_INPUT_H
#define AMDGPU_PLUGIN_MAP_MAP_INPUT_H

#include "map/gpu_rules.h"
#include "map/search.h"

struct map_input {
	struct link_graph saved;
	struct link_graph local;
	const struct map_options *options;
	/* By saved GPU, sets of local GPUs. The candidates of a pinned GPU are that one GPU. */
	uint64_t candidates[GPU_SET_MAX];
	uint64_t same_device[GPU_SET_MAX];
	uint64_t same_id[GPU_SET_MAX];
	uint64_t same_partition[GPU_SET_MAX];
	/* By saved GPU: the local GPU that the device-map demands, or no GPU. */
	uint64_t pinned[GPU_SET_MAX];
	/* By saved GPU: the local GPU of the mapping, if there is one. */
	uint16_t local_of[GPU_SET_MAX];
	struct search_sharing sharing;
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

/* The search problem for all saved GPUs. */
static inline struct search_problem map_input_problem(const struct map_input *in,
						      unsigned int rules)
{
	return (struct search_problem){
		.saved = &in->saved,
		.local = &in->local,
		.wanted = set_of_first(in->saved.num_gpus),
		.candidates = in->candidates,
		.same_device = in->same_device,
		.same_id = in->same_id,
		.same_partition = in->same_partition,
		.sharing = &in->sharing,
		.rules = rules,
	};
}

#endif
