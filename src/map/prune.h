/* SPDX-License-Identifier: GPL-2.0-only */
/* What the rules between GPUs leave of each saved GPU's candidates. */
#ifndef AMDGPU_PLUGIN_MAP_PRUNE_H
#define AMDGPU_PLUGIN_MAP_PRUNE_H

#include "map/search.h"

/* A rule that saved GPUs of one block stay in one local block: the hives that links
 * make, and CPU nodes. */
struct blocking {
	struct partition saved;
	struct partition local;
	/* No two saved blocks in one local block: by rule, or because no two have room. */
	bool apart;
};

struct narrowing {
	const struct search_problem *problem;
	struct blocking blockings[2];
	size_t num_blockings;
	/* Look harder: worth its time once a search has turned out to be long. */
	bool thorough;
};

void prune_init(const struct search_problem *problem, struct narrowing *ret_narrowing);

/* The local GPUs that have the CPU link that saved GPU @saved asks for, whatever the others do. */
struct gpu_set prune_by_cpu_link(const struct search_problem *problem, size_t saved);

/* The local blocks that have room for all of saved block @block. */
struct gpu_set prune_groups_for(const struct blocking *blocking, const struct gpu_set *left,
				size_t block);

/* Narrows @left, the candidates of each saved GPU, until the rules say nothing more. false: there
 * is no assignment. */
bool prune_all(const struct narrowing *narrowing, struct gpu_set *left);

#endif
