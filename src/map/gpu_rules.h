/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules for one saved GPU and one local GPU. For the rules between GPUs call search_best(). */
#ifndef AMDGPU_PLUGIN_MAP_GPU_RULES_H
#define AMDGPU_PLUGIN_MAP_GPU_RULES_H

#include "criu/options.h"
#include "map/links.h"

struct difference {
	const char *property;
	uint64_t saved;
	uint64_t local;
	/* The local value must be at least as large, not equal. */
	bool at_least;
	/* The environment variable that turns the check off, as "NAME=0", or NULL if none does. */
	const char *variable;
};

/* Returns the number of mismatches: 0 if @local fits. Writes the first mismatch, in the order of
 * the table, to @ret_first. */
size_t gpu_rules_compare(const struct topology_node *saved, const struct topology_node *local,
			 const struct map_options *options, struct difference *ret_first);

/* For a saved GPU that no local GPU fits: the local GPU with the fewest mismatches, and the first
 * of these. @local must have a GPU. */
size_t gpu_rules_nearest(const struct topology_node *saved, const struct link_graph *local,
			 const struct map_options *options, struct difference *ret_first);

/* Whether AMDGPU_FORCE=1 lets @local_gpu replace @saved_gpu in spite of mismatches: it is the same
 * card by unique_id, or by slot and device_id, in the same partition mode. So only the driver
 * counts something in another way. */
bool gpu_rules_can_force(const struct link_graph *saved, size_t saved_gpu,
			 const struct link_graph *local, size_t local_gpu);

/* The option that relaxes mismatch @d of the two, as "NAME=VALUE", or "" if none does. */
const char *gpu_rules_relaxed_by(const struct link_graph *saved, size_t saved_gpu,
				 const struct link_graph *local, size_t local_gpu,
				 const struct difference *d);

/* Whether @local_gpu fits @saved_gpu, also by force. */
bool gpu_rules_fit(const struct link_graph *saved, size_t saved_gpu, const struct link_graph *local,
		   size_t local_gpu, const struct map_options *options);

/* Whether the two are the same device: the same card by unique_id, or the same slot by PCI address
 * and gpu_id. */
bool gpu_rules_is_same_device(const struct link_graph *saved, size_t saved_gpu,
			      const struct link_graph *local, size_t local_gpu);

/* Whether @local has, in its PCI device, the number of partition @saved. GPUs that are no
 * partitions have number 0. */
bool gpu_rules_is_same_partition(const struct topology_node *saved,
				 const struct topology_node *local);

#endif
