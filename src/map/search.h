/* SPDX-License-Identifier: GPL-2.0-only */
/* All saved GPUs against all local ones: finds the best assignment that keeps the rules, or proves
 * that there is none. Always ends, in bounded memory, and gives the same answer each time. */
#ifndef AMDGPU_PLUGIN_MAP_SEARCH_H
#define AMDGPU_PLUGIN_MAP_SEARCH_H

#include "map/links.h"

/* What is asked of GPUs together: each row all that those above it ask. */
enum search_rules {
	/* No two on one. */
	SEARCH_ONE_TO_ONE,
	/* Pairs linked by XGMI stay linked. */
	SEARCH_LINKS,
	/* GPUs of one CPU node stay on one. */
	SEARCH_TOGETHER,
	/* GPUs of different CPU nodes stay on different ones. */
	SEARCH_APART,
};

struct search_problem {
	/* With no more GPUs than the local machine. */
	const struct link_graph *saved;
	const struct link_graph *local;
	/* The saved GPUs to be placed. */
	struct gpu_set wanted;
	/* By saved GPU: the local ones that may stand for it, and those that are the very same. */
	const struct gpu_set *candidates;
	const struct gpu_set *same;
	enum search_rules rules;
};

struct search_result {
	/* By saved GPU that was wanted: the local one. */
	uint16_t local_of[GPU_SET_MAX];
	/* Attempts made, which is what a search costs. */
	uint64_t attempts;
};

/* The assignment with the most GPUs on the very same ones, and among those the one that gives each
 * saved GPU in turn the lowest local one. 0; -ESRCH: there is none; -ENOMEM; -E2BIG: none has been
 * found in SEARCH_ATTEMPTS_MAX attempts. One found in as many is taken, best or not.
 * result->attempts is added to. */
int search_best(const struct search_problem *problem, struct search_result *result);

/* Whether there is any: 0, or as above. */
int search_any(const struct search_problem *problem, struct search_result *result);

/* Machines take a few, most of them one. Not so many that a restore seems to hang: the problem is
 * hard in theory, and links could be made up that nobody can untangle. */
#define SEARCH_ATTEMPTS_MAX 20000

#endif
