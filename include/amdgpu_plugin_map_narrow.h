/* SPDX-License-Identifier: GPL-2.0-only */
/* What the rules between GPUs leave of each saved GPU's candidates. */
#ifndef AMDGPU_PLUGIN_MAP_NARROW_H
#define AMDGPU_PLUGIN_MAP_NARROW_H

#include "amdgpu_plugin_map_search.h"

/* The local GPUs that have the CPU link that saved GPU @saved asks for, whatever the others do. */
struct gpu_set narrow_by_cpu_link(const struct search_problem *p, size_t saved);

/* The wanted GPUs of a saved region: they stay together. */
struct gpu_set narrow_group_of(const struct search_problem *p, size_t region);

/* The local regions that have room for all of @group. */
struct gpu_set narrow_regions_for(const struct search_problem *p, const struct gpu_set *left,
				  const struct gpu_set *group);

/* Narrows @left, the candidates of each saved GPU, until the rules say nothing more. false: there is no
 * assignment. */
bool narrow_all(const struct search_problem *p, struct gpu_set *left);

#endif
