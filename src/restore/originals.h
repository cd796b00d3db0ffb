/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes that the images were made of, and replicas of them. AMD's out-of-tree driver shares
 * BOs by share handles, which the images have. As long as another process of this host has a BO
 * with such a handle, RESTORE joins the restored process to that BO. */
#ifndef AMDGPU_PLUGIN_RESTORE_ORIGINALS_H
#define AMDGPU_PLUGIN_RESTORE_ORIGINALS_H

#include "restore/restore.h"

/* In CRIU's main process, before CRIU forks the tasks: waits up to 10 seconds until no KFD process
 * of this host may have the share handles of the images. A process may have them if its pid, as it
 * sees itself, is that of an image, or if it has ended and the driver has not freed its memory yet.
 * Logs on error. A stream cannot be searched, so a dump to a stream refuses BOs with share
 * handles. */
int originals_await(const struct restore_session *session);

#endif
