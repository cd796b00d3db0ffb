/* SPDX-License-Identifier: GPL-2.0-only */
/* Prunes domains: the domain of a saved GPU is the set of local GPUs that the search may still
 * assign to it. Arrays of domains are indexed by saved GPU. */
#ifndef AMDGPU_PLUGIN_MAP_PRUNE_H
#define AMDGPU_PLUGIN_MAP_PRUNE_H

#include "map/matching.h"
#include "map/search.h"

/* The rule that the saved GPUs of one group stay in one local group. Groups are hives or CPU
 * nodes. */
struct group_rule {
	struct gpu_groups saved;
	struct gpu_groups local;
	/* No two saved groups may share a local group: by rule, or because no two fit. */
	bool apart;
};

struct pruning {
	const struct search_problem *problem;
	struct group_rule rules[2];
	size_t num_rules;
	/* Also match peers one by one. Pays off in a long search only. */
	bool thorough;
};

void prune_init(const struct search_problem *problem, struct pruning *ret_pruning);

/* The local GPUs with the CPU link that saved GPU @saved needs. */
uint64_t prune_by_cpu_link(const struct search_problem *problem, size_t saved);

/* The local groups that have room for all GPUs of saved group @group. */
uint64_t prune_groups_for(const struct group_rule *rule, const uint64_t *domains, size_t group);

/* Removes local GPUs from @domains until no rule excludes another. false: no assignment exists. */
bool prune_all(const struct pruning *pruning, uint64_t *domains);

/* Scratch buffer of prune_bound(), allocated by the caller, contents undefined. */
struct bound_buffer {
	/* By saved and local group. */
	uint16_t kept[GPU_SET_MAX][GPU_SET_MAX];
	struct costs costs;
};

/* An upper bound for the number of saved GPUs that stay on the same device, as each saved group
 * moves to one local group. @same: by saved GPU, those of its domain that are the same device. */
int prune_bound(struct bound_buffer *buffer, const struct group_rule *rule, uint64_t wanted,
		const uint64_t *same);

#endif
