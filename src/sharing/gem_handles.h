/* SPDX-License-Identifier: GPL-2.0-only */
/* The GEM handles of a task (virtual memory API, IPC of ROCr 7.2): handles of KFD's BOs in the
 * render files of its compute VMs, with their mappings on the GPUs, and the metadata of the BOs. A
 * program keeps the numbers of its handles. The kernel gives out the lowest number that is free, so
 * the task makes them in the order of numbers, and takes the numbers between with fillers. */
#ifndef AMDGPU_PLUGIN_SHARING_GEM_HANDLES_H
#define AMDGPU_PLUGIN_SHARING_GEM_HANDLES_H

#include "session/restore_session.h"

/* Changes the handles of the image in task->kfd, which is valid: of those whose BO is an import,
 * the object is that of the BO; of others it is 0, and the BO is an index in the list of BOs that
 * RESTORE makes. Call this before imports_take(), which removes BOs from the image. Logs on error.
 */
int gem_handles_take(struct restored_task *task);

/* After RESTORE of @state and imports_restore(): makes the handles and their mappings in the files
 * that RESTORE has received, and sets the metadata. Logs on error. */
int gem_handles_restore(struct restore_session *session, const struct kfd_state *state);

#endif
