/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules for one saved GPU and one local GPU. For the rules between GPUs call search_best(). */
#ifndef AMDGPU_PLUGIN_MAP_GPU_RULES_H
#define AMDGPU_PLUGIN_MAP_GPU_RULES_H

#include "map/map_input.h"

struct difference {
	const char *property;
	uint64_t saved;
	uint64_t local;
	/* The local value must be at least as large, not equal. */
	bool at_least;
	/* The option that relaxes it, as "NAME=VALUE", or "" if none does. */
	const char *relaxed_by;
};

/* Returns the number of mismatches: 0 if GPU @local fits GPU @saved. Writes the first mismatch, in
 * the order of the table, to @ret_first. */
size_t gpu_rules_compare(const struct map_input *in, size_t saved, size_t local,
			 struct difference *ret_first);

/* For a saved GPU that no local GPU fits: the local GPU with the fewest mismatches. There must be a
 * local GPU. */
size_t gpu_rules_nearest(const struct map_input *in, size_t saved);

/* Whether AMDGPU_FORCE=1 lets @local replace @saved in spite of mismatches: it is the same card by
 * unique_id, or by slot and device_id, in the same partition mode. So only the driver counts
 * something in another way. */
bool gpu_rules_can_force(const struct map_input *in, size_t saved, size_t local);

/* Whether @local fits @saved, also by force. */
bool gpu_rules_fit(const struct map_input *in, size_t saved, size_t local);

/* Whether the two are the same device: the same card by unique_id, or the same slot by PCI address
 * and gpu_id. */
bool gpu_rules_is_same_device(const struct map_input *in, size_t saved, size_t local);

/* Whether @local has, in its PCI device, the number of partition @saved. GPUs that are no
 * partitions have number 0. */
bool gpu_rules_is_same_partition(const struct map_input *in, size_t saved, size_t local);

/* Whether @local has the CPU link that @saved needs: none if @saved has none, an XGMI link if
 * @saved has one, else any. */
bool gpu_rules_cpu_link_serves(const struct map_input *in, size_t saved, size_t local);

#endif
