/* SPDX-License-Identifier: GPL-2.0-only */
/* The open dma-bufs of the calling task. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_DMABUF_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_DMABUF_H

#include "criu-amdgpu.pb-c.h"
#include "session/restore_session.h"

/* Restores the open dma-buf of image @id. If the task has KFD state, restores that first: other
 * tasks may wait for it. Returns a descriptor, which is the caller's. Logs on error. */
int restore_dmabuf_open(struct restore_session *session, int id, const CriuDmabufNode *image);

#endif
