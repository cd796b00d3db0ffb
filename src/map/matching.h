/* SPDX-License-Identifier: GPL-2.0-only */
/* One-to-one assignments where nothing but the candidates counts: the part of mapping that needs no
 * search (bipartite matching). */
#ifndef AMDGPU_PLUGIN_MAP_MATCHING_H
#define AMDGPU_PLUGIN_MAP_MATCHING_H

#include "map/gpu_set.h"

/* Whether each of @count sets can give one element so that all are different. */
bool matching_exists(const struct gpu_set *sets, size_t count);

struct costs {
	uint16_t of[GPU_SET_MAX][GPU_SET_MAX];
};

/* Rows get one column each, as many as there are columns, so that the sum of costs is least. Zeroed
 * (but for @size), then kept up to date while sets of allowed columns shrink: what still holds is
 * not worked out again. */
struct matching {
	size_t size;
	/* 1 + index; 0: none yet. */
	uint16_t column_of[GPU_SET_MAX];
	uint16_t row_of[GPU_SET_MAX];
	/* No allowed pair costs less than its two prices together, and matched ones cost just that:
	 * so no other assignment is cheaper. */
	int32_t row_price[GPU_SET_MAX];
	int32_t column_price[GPU_SET_MAX];
};

/* false: no assignment is left, and @matching is of no use any more. */
bool matching_update(struct matching *matching, const struct gpu_set *allowed,
		     const struct costs *costs);

#endif
