/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents of the BOs that a restored task has been given, filled in by the task or
 * by CRIU's main process. */
#ifndef AMDGPU_PLUGIN_RESTORE_FILL_H
#define AMDGPU_PLUGIN_RESTORE_FILL_H

#include "kernel/kfd.h"
#include "restore/restore.h"

/* In a task, before anything is rebuilt: whether the files of contents are there, and as long as
 * the BOs of its (verified) image. Of streams nobody can tell. -errno after a line. */
int fill_check(const struct restored_task *task);

/* In a task, whose BOs @state has: PHASE_DONE when their contents are in place; PHASE_HANDED_OFF
 * when the main process has taken them over; or -errno after a line. */
int fill_contents(const struct restore_session *session, const struct kfd_state *state);

#endif
