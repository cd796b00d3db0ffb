/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of local GPUs that could change places without a difference to the search. */
#ifndef AMDGPU_PLUGIN_MAP_TWINS_H
#define AMDGPU_PLUGIN_MAP_TWINS_H

#include "map/search.h"

/* Whether @a and @b could, their GPUs in ascending order: links, regions and candidates (@left)
 * would be as they are, and with @same (NULL: not asked) what stays the very same. */
bool are_twins(const struct search_problem *p, const struct gpu_set *left,
	       const struct gpu_set *same, const struct gpu_set *a, const struct gpu_set *b);

#endif
