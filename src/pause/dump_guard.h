/* SPDX-License-Identifier: GPL-2.0-only */
/* The guards of a dump. If CRIU is killed, a guard process (criu/guard.h) starts the queues of the
 * job and removes the state images, which are incomplete. A second one takes over when the dump is
 * complete. */
#ifndef AMDGPU_PLUGIN_PAUSE_DUMP_GUARD_H
#define AMDGPU_PLUGIN_PAUSE_DUMP_GUARD_H

#include "session/dump_session.h"

/* Starts a guard for all files of the session, and ends the guard before it. Call this before the
 * owners of new files are paused, in the thread that traces the tasks. */
int dump_guard_start(struct dump_session *session);
/* For a dump that has succeeded and whose tasks CRIU is about to kill: leaves the processes with
 * images, paused, to a guard that is no child of CRIU. Their queues stay stopped until the driver
 * removes them with the process. If CRIU lets go of a process instead, or dies, the guard starts
 * its queues. dump_session then counts them as not paused. On error nothing has changed.
 * -ENOENT: no process is paused. */
int dump_guard_leave(struct dump_session *session);

#endif
