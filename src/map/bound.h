/* SPDX-License-Identifier: GPL-2.0-only */
/* A bound for the search: no assignment keeps more GPUs than each block of GPUs can in the local
 * block where it can keep most. */
#ifndef AMDGPU_PLUGIN_MAP_BOUND_H
#define AMDGPU_PLUGIN_MAP_BOUND_H

#include "map/matching.h"
#include "map/prune.h"

/* Room to work in, of the caller's; what is in it does not matter. */
struct bound_room {
	/* By saved and local block. */
	uint16_t kept[GPU_SET_MAX][GPU_SET_MAX];
	struct costs costs;
};

/* @kept_if: by saved GPU, those of its candidates that are the very same GPU. */
int prune_bound(struct bound_room *room, const struct blocking *blocking,
		const struct gpu_set *wanted, const struct gpu_set *kept_if);

#endif
