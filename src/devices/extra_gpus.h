/* SPDX-License-Identifier: GPL-2.0-only */
/* Extra GPUs: the restored task sees them, but its image does not have them. RESTORE needs a bucket
 * for each visible GPU. */
#ifndef AMDGPU_PLUGIN_DEVICES_EXTRA_GPUS_H
#define AMDGPU_PLUGIN_DEVICES_EXTRA_GPUS_H

#include <stdbool.h>

#include "devices/hide.h"
#include "kernel/kfd.h"
#include "map/map.h"
#include "session/restore_session.h"

/* Decides what becomes of the extra GPUs. The process should have only the GPUs of its image, so
 * extra_gpus_hide() will try to hide the others (task->hides_others). It must succeed
 * (task->must_hide says why) if XNACK, SVM ranges, private data of an unknown layout, or a GPU
 * without a render node make RESTORE fail. -EINVAL: it must, but the task has opened /dev/kfd
 * already. Logs on error. */
int extra_gpus_check(struct restored_task *task);
/* Whether KFD does not give this GPU of task->local to the process. */
bool extra_gpus_is_hidden(const struct restored_task *task, const struct topology_node *gpu);
/* Hides these GPUs until hide_end(), for the first open of /dev/kfd, and empties task->map.extra.
 * If that is impossible and need not be, clears task->hides_others instead, and RESTORE takes the
 * extra GPUs with buckets of their own. Logs on error. */
int extra_gpus_hide(struct restored_task *task, struct hide *ret_hide);

/* Appends a bucket for each extra GPU after the @state->num_devices buckets. The caller has
 * allocated buckets and private data for them, and closes the render nodes in the buckets, on
 * failure too. The descriptors have numbers of at least @lowest_fd. */
int extra_gpus_add(const struct gpu_map *map, int lowest_fd, struct kfd_state *state);

#endif
