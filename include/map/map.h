/* SPDX-License-Identifier: GPL-2.0-only */
/* Which GPU of this machine stands for which GPU of the image. Works on data alone. */
#ifndef AMDGPU_PLUGIN_MAP_MAP_H
#define AMDGPU_PLUGIN_MAP_MAP_H

#include "amdgpu_plugin_topology.h"
#include "criu/options.h"

enum map_outcome {
	MAP_MAPPED,
	/* GPUs of different CPU nodes have come together. */
	MAP_MAPPED_WARNING,
	MAP_REFUSED,
	/* A gpu_id twice: such a topology is not to be trusted. */
	MAP_MALFORMED,
};

/* Why there is no map, in the order in which it is asked. */
enum map_reason {
	REASON_NONE,
	REASON_MALFORMED,
	/* More GPUs than the mapper can count. */
	REASON_TOO_MANY,
	/* More GPUs in the image than here. */
	REASON_COUNT,
	/* The user's device-map names what is not there, or breaks a rule. */
	REASON_DEVICE_MAP,
	/* Some GPU fits nowhere. */
	REASON_NO_CANDIDATE,
	/* Each fits somewhere, but not all at once. */
	REASON_COUNT_FITTING,
	/* XGMI pairs would be torn apart. */
	REASON_LINKS,
	/* GPUs of one CPU node would be torn apart, or their link to it. */
	REASON_NUMA,
	/* The search has been given up: never seen with links that were not made up. */
	REASON_UNDECIDED,
};

struct gpu_map {
	/* Indexed like saved->nodes: the node of the local topology; NULL for CPU nodes, and for
	 * all where there is no map. */
	const struct topology_node **local;
	size_t num_nodes;
	/* Local GPUs that stand for none, in node order; the array has room for all. */
	const struct topology_node **surplus;
	size_t num_surplus;
	enum map_outcome outcome;
	enum map_reason reason;
	/* The reason in one word, a property or rule after ':', and the gpu_id where
	 * one is to blame. */
	char words[64];
	/* What is wrong with the device-map. */
	char problem[256];
	/* What the search has cost. */
	uint64_t attempts;
};

/* Finds the map, or why there is none. Silent. -ENOMEM.
 *
 * Each saved GPU gets a local one that has what it needs; pairs linked by XGMI stay linked;
 * GPUs that share a CPU node still share one, and others do not if that can be had
 * (KFD_NUMA_CHECK). As many GPUs as possible stay the very same ones; then the lowest nodes
 * win, so that there is one answer. */
int map_decide(const struct topology *saved, const struct topology *local,
	       const struct options *options, struct gpu_map *ret_map);
void map_done(struct gpu_map *map);

/* map_decide(), and lines in the log that say what stands for what, or why nothing does and what is
 * needed. -ENODEV: refused; -EINVAL: malformed. */
int map_gpus(const struct topology *saved, const struct topology *local,
	     const struct options *options, struct gpu_map *ret_map);

#endif
