/* SPDX-License-Identifier: GPL-2.0-only */
/* Bipartite matching: assigns each row a column of its own. For the rules between GPUs call
 * search_best(). */
#ifndef AMDGPU_PLUGIN_MAP_MATCHING_H
#define AMDGPU_PLUGIN_MAP_MATCHING_H

#include "map/gpu_set.h"

/* Whether @count different elements exist, one of each set. */
bool matching_exists(const uint64_t *sets, size_t count);

struct costs {
	uint16_t of[GPU_SET_MAX][GPU_SET_MAX];
};

/* The assignment of rows to as many columns with the least sum of costs. The caller zeroes all but
 * @size. matching_update() keeps the pairs that are still allowed, so that repeated calls with
 * shrinking sets are cheap. */
struct matching {
	size_t size;
	/* 1 + index, or 0 before there is one. */
	uint16_t column_of[GPU_SET_MAX];
	uint16_t row_of[GPU_SET_MAX];
	/* Each allowed pair costs at least the sum of its prices, and a matched pair exactly that.
	 * So no other assignment is cheaper. */
	int32_t row_price[GPU_SET_MAX];
	int32_t column_price[GPU_SET_MAX];
};

/* false: no assignment exists; @matching is then invalid. @allowed: by row, a set of columns. */
bool matching_update(struct matching *matching, const uint64_t *allowed, const struct costs *costs);

#endif
