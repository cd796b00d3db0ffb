/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of a restored task's GPUs: what RESTORE is given a descriptor of, BOs can be mapped
 * through that very file only. Saved GPUs are of the task's image, which is read and mapped;
 * functions return -errno without a line unless they say so. */
#ifndef AMDGPU_PLUGIN_RESTORE_GPU_FILES_H
#define AMDGPU_PLUGIN_RESTORE_GPU_FILES_H

#include <stdbool.h>

#include "restore/restore.h"

/* The GPU that stands for @saved. */
const struct topology_node *gpu_files_local(const struct restored_task *task,
					    const struct topology_node *saved);
/* A number from which on no descriptor of the task is in the way. */
int gpu_files_lowest_fd(const struct restored_task *task);
/* Whether no mapping will be asked about, so that no hook is certain to come
 * after the task's files. */
bool gpu_files_are_unmapped(const struct restored_task *task);

/* The file through which the GPU's BOs will be restored and mapped, opened when
 * first asked for; borrowed. */
int gpu_files_compute(struct restored_task *task, const struct topology_node *saved, int *ret_fd);
/* After RESTORE, where nothing is mapped: what stays open would be the task's from now on, and
 * saved as such by its next dump. -errno after a line. */
int gpu_files_close_unneeded(struct restored_task *task);

#endif
