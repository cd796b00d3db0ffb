/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps a restored task apart from processes that are not restored with it. AMD's out-of-tree
 * driver shares BOs by share handles, which the images have. As long as a process of this host has
 * a BO with such a handle, RESTORE gives the restored task that BO, and the plugin would load the
 * saved contents into it. */
#ifndef AMDGPU_PLUGIN_SHARING_SHARE_HANDLES_H
#define AMDGPU_PLUGIN_SHARING_SHARE_HANDLES_H

#include "session/restore_session.h"

/* In the task, with its new /dev/kfd @fd, before RESTORE: waits up to 10 seconds until no process
 * has a BO with a share handle of the task's image, unless another task of the restore has made
 * that BO again. If the handle is still in use, AMDGPU_FORCE=1 gives the BO a new handle in the
 * image. Logs on error. */
int share_handles_await(struct restore_session *session, int fd);

#endif
