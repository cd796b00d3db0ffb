/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks that a restored process has the memory that its GPUs use. The driver starts the queues
 * without memory that is not there, and what a GPU reads or writes there is lost. */
#ifndef AMDGPU_PLUGIN_MEMORY_USER_MEMORY_H
#define AMDGPU_PLUGIN_MEMORY_USER_MEMORY_H

#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "session/restore_session.h"

/* In the task, after RESTORE of @state: notes the userptr BOs and SVM ranges of the task, which are
 * in @priv, the private data of the image. Logs on error. If the private data does not report them,
 * or if there are too many of them, logs a line, and the others are not checked. */
int user_memory_note(struct restore_session *session, const struct kfd_priv *priv,
		     const struct kfd_state *state);
/* In CRIU's main process, when all memory of task @pid is restored. Logs on error, with the first
 * range that is missing; with AMDGPU_FORCE=1 that is a warning. */
int user_memory_check(const struct restore_session *session, pid_t pid, pid_t vpid);

#endif
