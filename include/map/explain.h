/* SPDX-License-Identifier: GPL-2.0-only */
/* The result of map_decide() in words. */
#ifndef AMDGPU_PLUGIN_MAP_EXPLAIN_H
#define AMDGPU_PLUGIN_MAP_EXPLAIN_H

#include "map/map.h"

/* Logs the mapping, one line per GPU, or why no mapping exists and what the restore needs. 0 if a
 * mapping exists, -ENODEV: refused; -EINVAL: malformed. */
int explain_map(const struct gpu_map *map);

#endif
