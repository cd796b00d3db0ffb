/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the best assignment of local GPUs to saved GPUs that keeps the rules, or proves that none
 * exists. Always ends, uses bounded memory, and gives the same answer each time. */
#ifndef AMDGPU_PLUGIN_MAP_SEARCH_H
#define AMDGPU_PLUGIN_MAP_SEARCH_H

#include "map/links.h"

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

/* By saved GPU: the saved GPUs of its PCI device, and of others, with which it shares a BO. They
 * keep this relation by all rules. */
struct search_sharing {
	uint64_t siblings[GPU_SET_MAX];
	uint64_t strangers[GPU_SET_MAX];
};

struct search_problem {
	/* Has at most as many GPUs as @local. */
	const struct link_graph *saved;
	const struct link_graph *local;
	/* The saved GPUs to assign. */
	uint64_t wanted;
	/* By saved GPU: the local GPUs that fit, those that are the same device, the one with the
	 * gpu_id by which the process knows the saved GPU, and the partitions with its number. */
	const uint64_t *candidates;
	const uint64_t *same_device;
	const uint64_t *same_id;
	const uint64_t *same_partition;
	/* NULL: no BO is shared. */
	const struct search_sharing *sharing;
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
