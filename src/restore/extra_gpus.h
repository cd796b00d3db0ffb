/* SPDX-License-Identifier: GPL-2.0-only */
/* GPUs that the restored task sees and its image does not know: RESTORE wants a bucket for each
 * that is visible, whoever uses it. */
#ifndef AMDGPU_PLUGIN_RESTORE_EXTRA_GPUS_H
#define AMDGPU_PLUGIN_RESTORE_EXTRA_GPUS_H

#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "map/map.h"

/* Whether the image @id can be restored beside them. -EINVAL after a line that names them and tells
 * what to do: SVM ranges are saved for as many GPUs as the process saw, and a GPU without render
 * node cannot be listed. */
int extra_gpus_check(int id, const struct gpu_map *map, const struct topology *local,
		     const struct kfd_priv *priv);

/* Adds them to @state, whose buckets and private data have room for them, behind the
 * @state->num_devices that are mapped: each under its own id, or another where the process knows a
 * GPU by that. Render nodes are opened from number @lowest_fd on, and are the caller's to close
 * from the buckets, on failure too. */
int extra_gpus_add(const struct gpu_map *map, int lowest_fd, struct kfd_state *state);

#endif
