/* SPDX-License-Identifier: GPL-2.0-only */
/* The open files of a restored task's GPUs, and its /dev/kfd. The kernel lets a process map a BO
 * only through the open file that the process gave to RESTORE, so the plugin keeps these files
 * until CRIU has asked about the last mapping (mappings.h).
 *
 * A device is named by its minor at the dump, 0 for /dev/kfd. A saved GPU is one of task->saved.
 * The functions log nothing unless they say so. */
#ifndef AMDGPU_PLUGIN_MEMORY_GPU_FILES_H
#define AMDGPU_PLUGIN_MEMORY_GPU_FILES_H

#include <stdint.h>

#include "session/restore_session.h"

/* -ENOMEM. Takes the descriptor over, on failure too. */
int gpu_files_add(struct gpu_files *files, uint32_t saved_minor, int fd);
/* Returns a borrowed descriptor, or -1 if no file of that GPU was added. */
int gpu_files_find(const struct gpu_files *files, uint32_t saved_minor);
/* Closes all files, except descriptor @spared (-1 for none). */
void gpu_files_close(struct gpu_files *files, int spared);

/* The GPU of this machine that replaces @saved. */
const struct topology_node *gpu_files_local(const struct restored_task *task,
					    const struct topology_node *saved);

/* The file for RESTORE and the mappings of @saved, borrowed. Opens it in the first call. */
int gpu_files_compute(struct restored_task *task, const struct topology_node *saved, int *ret_fd);
/* The open file through which RESTORE and mappings use GPU @saved: a descriptor of that file, or of
 * another open file of the same node. Both are the caller's. */
int gpu_files_share(struct restored_task *task, const struct topology_node *saved, int *ret_fd);
int gpu_files_open_other(const struct restored_task *task, const struct topology_node *saved,
			 int *ret_fd);
/* After RESTORE, if CRIU will ask about no mapping: closes each file that no render node of the
 * images can need. Otherwise the descriptor leaks into the task, and its next dump saves it. */
void gpu_files_close_unneeded(struct restore_session *session);

#endif
