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

/* The rule that two saved GPUs that are peers in @saved get local GPUs that are peers in @local. */
struct peer_rule {
	const uint64_t *saved;
	const uint64_t *local;
};

struct pruning {
	const struct search_problem *problem;
	struct group_rule rules[2];
	size_t num_rules;
	struct peer_rule peer_rules[4];
	size_t num_peer_rules;
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
	/* The worth, by saved and local group. */
	uint16_t worth[GPU_SET_MAX][GPU_SET_MAX];
	struct costs costs;
};

/* What the search prefers. Keeping one GPU on the same device is worth more than the gpu_ids of all
 * GPUs. */
#define WORTH_SAME_ID     1
#define WORTH_SAME_DEVICE (GPU_SET_MAX + 1)
#define WORTH_MAX         (WORTH_SAME_DEVICE + WORTH_SAME_ID)

/* What the best of local GPUs @locals is worth to saved GPU @saved. */
int prune_worth(const struct search_problem *problem, size_t saved, uint64_t locals);

/* An upper bound for the worth of an assignment, as each saved group moves to one local group. */
int prune_bound(struct bound_buffer *buffer, const struct group_rule *rule,
		const struct search_problem *problem, const uint64_t *domains);

#endif
