/* SPDX-License-Identifier: GPL-2.0-only */
/* All that is known before mapping begins: shared by the units that decide, explain, and read what
 * the user has told. */
#ifndef AMDGPU_PLUGIN_MAP_MAP_CASE_H
#define AMDGPU_PLUGIN_MAP_MAP_CASE_H

#include "map/gpu_rules.h"
#include "map/map.h"
#include "map/search.h"

#define NOT_TOLD (-1)

struct map_case {
	struct link_graph saved;
	struct link_graph local;
	const struct options *options;
	/* By saved GPU, sets of local ones; where the user has told which, that one alone. */
	struct gpu_set candidates[GPU_SET_MAX];
	struct gpu_set same[GPU_SET_MAX];
	/* By saved GPU: the local one that the user has told, or NOT_TOLD. */
	int16_t told[GPU_SET_MAX];
};

/* The whole case as a question for the search. */
struct search_problem map_case_problem(const struct map_case *c, enum search_rules rules);

#endif
