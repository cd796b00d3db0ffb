/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of /dev/dri/renderD*: which they are, and their restore. src/dump/dump_files.c dumps
 * them. */
#ifndef AMDGPU_PLUGIN_DRM_H
#define AMDGPU_PLUGIN_DRM_H

#include <sys/stat.h>

#include "criu-amdgpu.pb-c.h"

struct restore_session;

/* Whether @fd, which may be an O_PATH one, is a render node of an AMD GPU: the driver's name says
 * so, not the number. 1, 0, or -errno, logged. */
int drm_is_render_node(int fd, const struct stat *stat);

/* Rebuilds the render node of image @id; the descriptor returned is the caller's. */
int drm_restore(struct restore_session *session, int id, const CriuRenderNode *image);

#endif
