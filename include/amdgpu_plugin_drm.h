/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of /dev/dri/renderD*: dump and restore. */
#ifndef AMDGPU_PLUGIN_DRM_H
#define AMDGPU_PLUGIN_DRM_H

#include <sys/stat.h>

#include "session.h"

/* Whether @fd, which may be an O_PATH one, is a render node of an AMD GPU: the driver's name says
 * so, not the number. 1, 0, or -errno after a line. */
int render_is_file(int fd, const struct stat *stat);

/* Saves the render node @fd (borrowed) as image @id. -EOPNOTSUPP after a line: it holds GEM objects
 * of its own. */
int render_dump(struct session *session, int fd, int id);

/* Completes the images of the render nodes already dumped: the compute files of @process, and the
 * ids by which the process knows its GPUs. */
int render_note_process(struct session *session, struct dumped_process *process);
/* No more KFD processes will come: writes the images that have waited for them. */
int render_finish(struct session *session);

/* Rebuilds the render node of image @id; the descriptor returned is the caller's. */
int render_restore(struct session *session, int id, const CriuRenderNode *image);

#endif
