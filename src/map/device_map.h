/* SPDX-License-Identifier: GPL-2.0-only */
/* The option device-map: SAVED=PRESENT pairs, by which the user tells what the mapper must do. */
#ifndef AMDGPU_PLUGIN_MAP_DEVICE_MAP_H
#define AMDGPU_PLUGIN_MAP_DEVICE_MAP_H

#include "map/map_case.h"

/* Fills c->told from the option. NULL, or the word for what is wrong: "syntax", "unknown",
 * "ambiguous", "twice"; with a sentence in @map->problem. */
const char *device_map_read(struct map_case *c, struct gpu_map *map);

/* Whether what was told keeps the rules. NULL, or the rule that it breaks: a property, "links" or
 * "numa"; with a sentence in @map->problem. Wants the candidates. */
const char *device_map_check(const struct map_case *c, struct gpu_map *map);

/* "0x70b3 (0000:05:00.0, renderD128)": the names that this option takes. */
void device_map_describe(const struct topology_node *gpu, char *text, size_t size);

#endif
