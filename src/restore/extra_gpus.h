/* SPDX-License-Identifier: GPL-2.0-only */
/* Extra GPUs: the restored task sees them, but its image does not have them. RESTORE needs a bucket
 * for each visible GPU. */
#ifndef AMDGPU_PLUGIN_RESTORE_EXTRA_GPUS_H
#define AMDGPU_PLUGIN_RESTORE_EXTRA_GPUS_H

#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "map/map.h"

/* Refuses what RESTORE cannot do beside extra GPUs. -EINVAL after a log line: the image has SVM
 * ranges (saved for the GPUs that the process saw), or its private data has an unknown layout, or a
 * visible GPU has no render node. */
int extra_gpus_check(int id, const struct gpu_map *map, const struct topology *local,
		     const struct kfd_priv *priv);

/* Appends a bucket for each extra GPU after the @state->num_devices buckets. The caller has
 * allocated buckets and private data for them, and closes the render nodes in the buckets, on
 * failure too. The descriptors have numbers of at least @lowest_fd. */
int extra_gpus_add(const struct gpu_map *map, int lowest_fd, struct kfd_state *state);

#endif
