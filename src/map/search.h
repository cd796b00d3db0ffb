/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the best assignment of local GPUs to saved GPUs that keeps the rules, or proves that none
 * exists. Always ends, uses bounded memory, and gives the same answer each time. */
#ifndef AMDGPU_PLUGIN_MAP_SEARCH_H
#define AMDGPU_PLUGIN_MAP_SEARCH_H

#include "map/map_input.h"

/* The rules between GPUs, as bits. Each saved GPU always gets a local GPU of its own. */
enum {
	/* GPUs linked by XGMI stay linked. */
	SEARCH_LINKS = 1 << 0,
	/* GPUs of one CPU node stay on one CPU node. */
	SEARCH_TOGETHER = 1 << 1,
	/* With SEARCH_TOGETHER: GPUs of different CPU nodes stay on different CPU nodes. */
	SEARCH_APART = 1 << 2,
	/* GPUs of one PCI device stay on one PCI device. */
	SEARCH_SIBLINGS = 1 << 3,
	/* Partitions keep their number in their PCI device. */
	SEARCH_PARTITIONS = 1 << 4,
};

struct search_problem {
	/* Has at most as many saved GPUs as local ones. */
	const struct map_input *in;
	/* The saved GPUs to assign. */
	uint64_t wanted;
	/* By saved GPU: those of @in, or some of them. */
	const uint64_t *candidates;
	unsigned int rules;
};

struct search_result {
	/* By wanted saved GPU: the local GPU. */
	uint16_t local_of[GPU_SET_MAX];
	/* How many GPUs are on the same device and keep their gpu_id: of two assignments for the
	 * same GPUs, the better one has the higher worth. */
	int worth;
	/* The number of search nodes that were visited. */
	uint64_t attempts;
};

/* The problem for all saved GPUs. */
struct search_problem search_problem_of(const struct map_input *in, unsigned int rules);

/* Finds the assignment with most GPUs on the same device, of equal ones the assignment in which
 * most GPUs keep their gpu_id, and of these the lexicographically lowest: each saved GPU in turn
 * gets the lowest local GPU. -ESRCH: no assignment exists; -ENOMEM; -E2BIG: none found in
 * SEARCH_ATTEMPTS_MAX attempts. An assignment found by then is returned even if it may not be the
 * best. Adds to result->attempts. */
int search_best(const struct search_problem *problem, struct search_result *result);

/* Finds any assignment. Returns the same errors. */
int search_any(const struct search_problem *problem, struct search_result *result);

/* Real machines need a few attempts, most need one. The limit keeps a restore from hanging: the
 * problem is NP-hard, and an attacker can make up links without a quick answer. */
#define SEARCH_ATTEMPTS_MAX 20000

#endif
