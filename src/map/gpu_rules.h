/* SPDX-License-Identifier: GPL-2.0-only */
/* One GPU against one GPU: what a GPU must have to stand for another. How GPUs go together
 * is the search's business. */
#ifndef AMDGPU_PLUGIN_MAP_GPU_RULES_H
#define AMDGPU_PLUGIN_MAP_GPU_RULES_H

#include "criu/options.h"
#include "map/links.h"

struct difference {
	const char *property;
	uint64_t saved;
	uint64_t local;
	/* The local value need only be as large. */
	bool at_least;
	/* The environment variable that switches the check off; NULL: nothing does. */
	const char *variable;
};

/* How many properties keep @local from standing for @saved; where there are any, @ret_first gets
 * the first, in the order of the rules. */
size_t gpu_rules_compare(const struct topology_node *saved, const struct topology_node *local,
			 const struct options *options, struct difference *ret_first);

/* The local GPU that differs least from @saved, which none can stand for: the first with the fewest
 * differences, whose first one tells best what is missing. @local has a GPU. */
size_t gpu_rules_nearest(const struct topology_node *saved, const struct link_graph *local,
			 const struct options *options, struct difference *ret_first);

/* The local GPUs that may stand for saved GPU @saved_gpu, and those that are the very same GPU: the
 * same card by unique_id, or in the same slot by PCI address and gpu_id. */
struct gpu_set gpu_rules_candidates(const struct link_graph *saved, size_t saved_gpu,
				    const struct link_graph *local, const struct options *options);
struct gpu_set gpu_rules_same_device(const struct link_graph *saved, size_t saved_gpu,
				     const struct link_graph *local);

#endif
