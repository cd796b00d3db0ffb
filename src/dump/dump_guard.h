/* SPDX-License-Identifier: GPL-2.0-only */
/* What becomes of a job whose CRIU is killed while it is being dumped: a guard
 * (amdgpu_plugin_guard.h) starts its queues and removes the images, which are incomplete. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_GUARD_H
#define AMDGPU_PLUGIN_DUMP_DUMP_GUARD_H

#include "dump/dump.h"

/* Starts a guard for all processes of the session in place of the one that there is, if any. To be
 * called by the tracing thread before it pauses the last of them: there is no moment at which a
 * paused one has none. */
int dump_guard_start(struct dump_session *session);
/* When none is paused any more. */
void dump_guard_end(struct dump_session *session);

#endif
