/* SPDX-License-Identifier: GPL-2.0-only */
/* The mapper's answer in words, for CRIU's log. */
#ifndef AMDGPU_PLUGIN_MAP_EXPLAIN_H
#define AMDGPU_PLUGIN_MAP_EXPLAIN_H

#include "map/map_case.h"

/* A line a GPU that was mapped; or what keeps GPUs from standing for others, and one closing line
 * that says what is needed. 0; -ENODEV: refused; -EINVAL: malformed. */
int map_explain(const struct map_case *c, const struct gpu_map *map);

#endif
