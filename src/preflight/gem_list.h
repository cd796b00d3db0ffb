/* SPDX-License-Identifier: GPL-2.0-only */
/* The GEM handles of a KFD process: a program imports KFD's BOs into the render files of its
 * compute VMs, to map them there by GEM_VA (virtual memory API), or to note metadata at them (IPC
 * of ROCr 7.2). Kernels list handles and mappings from Linux 6.18 on. Before that, the plugin tries
 * the numbers, and saves only handles that IPC has made, as ROCr does not map these. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_GEM_LIST_H
#define AMDGPU_PLUGIN_PREFLIGHT_GEM_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "session/dump_session.h"

/* Lists the handles of file->fd, which is a render node of file->gpu. gem_list_files_done() frees
 * them. Logs nothing. */
int gem_list_read_file(struct gem_file *file);
/* Lists the files of process @pid and their handles. A kernel that does not hand out descriptors of
 * other processes shows none. Free the result with gem_list_files_done().
 * Logs nothing. */
int gem_list_read(pid_t pid, const struct topology *topology, struct gem_files *ret_files);
/* The same for a KFD process that runs on, without the files whose copy would stop its queues. */
int gem_list_read_running(pid_t pid, const struct topology *topology, struct gem_files *ret_files);
void gem_list_files_done(struct gem_files *files);

/* Finds the compute file of @process for each of its GPUs, and lists in process->gem the handles of
 * these files, by GPU and number. The process has its GPUs and its render files. -EOPNOTSUPP: a
 * handle cannot be saved. Logs on error. */
int gem_list_save(struct dumped_process *process);
/* Whether the process has a handle of an object at @mmap_offset of the GPU that it knows as
 * @gpu_id, and no BO of that object. */
bool gem_list_has_foreign(const struct gem_saved_list *saved, uint32_t gpu_id,
			  uint64_t mmap_offset);
void gem_list_saved_done(struct gem_saved_list *saved);

#endif
