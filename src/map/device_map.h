/* SPDX-License-Identifier: GPL-2.0-only */
/* The option device-map: SAVED=PRESENT pairs with which the user pins saved GPUs to local GPUs. */
#ifndef AMDGPU_PLUGIN_MAP_DEVICE_MAP_H
#define AMDGPU_PLUGIN_MAP_DEVICE_MAP_H

#include "map/map.h"
#include "map/map_input.h"

/* Fills in->pinned from the option, and checks the pinned GPUs against the rules for one GPU and
 * for two; or sets map->device_map_error and map->problem. -ENOMEM. */
int device_map_read(struct map_input *in, struct gpu_map *map);

#endif
