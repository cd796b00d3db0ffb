/* SPDX-License-Identifier: GPL-2.0-only */
/* Which GPU of this machine stands for which GPU of the image. Works on data alone. */
#ifndef AMDGPU_PLUGIN_MAP_H
#define AMDGPU_PLUGIN_MAP_H

#include "amdgpu_plugin_options.h"
#include "amdgpu_plugin_topology.h"

struct gpu_map {
	/* Indexed like saved->nodes: the node of the local topology, NULL for CPU nodes. */
	const struct topology_node **local;
	size_t num_nodes;
};

/* Finds a map, or -ENODEV after lines in the log that say why there is none. Each saved GPU gets a
 * local one that has what it needs; pairs linked by XGMI stay linked; GPUs that share a CPU node
 * still share one and others do not (KFD_NUMA_CHECK). Where there is a choice, GPUs stay the very
 * same ones, then the lowest node wins, so the answer does not depend on directory order. */
int map_gpus(const struct topology *saved, const struct topology *local,
	     const struct options *options, struct gpu_map *ret_map);
void map_done(struct gpu_map *map);

/* The first property that keeps @local from standing for @saved, or NULL. @ret_variable gets the
 * environment variable that would relax the check, NULL where there is none. */
const char *map_first_difference(const struct topology_node *saved,
				 const struct topology_node *local, const struct options *options,
				 const char **ret_variable);

#endif
