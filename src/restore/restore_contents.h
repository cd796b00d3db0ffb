/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents of the BOs of a restored task. The task loads them, or CRIU's main process does. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_CONTENTS_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_CONTENTS_H

#include "kernel/kfd.h"
#include "session/restore_session.h"

/* In a task, before RESTORE: checks that the pages files exist and have the sizes of the BOs in the
 * validated image. Does not check streams. Logs on error. */
int restore_contents_check(const struct restored_task *task);

/* In a task, after RESTORE has put the BOs in @state: loads their contents, or hands them to the
 * main process, and sets the phase of the task. Logs on error. */
int restore_contents_load(const struct restore_session *session, const struct kfd_state *state);

#endif
