/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of /dev/dri/renderD*: dump and restore. */
#ifndef AMDGPU_PLUGIN_DRM_H
#define AMDGPU_PLUGIN_DRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "criu-amdgpu.pb-c.h"

struct dump_session;
struct dumped_process;
struct restore_session;

/* The render nodes of a dump whose images are not written yet. Begins all zero. */
struct render_list {
	struct dumped_render {
		int id;
		int fd;
		uint32_t render_minor;
		/* Number of its GEM handles, 0 if the kernel does not list them. */
		size_t num_handles;
		/* The process whose compute VM is the VM of the file, or NULL. */
		const struct dumped_process *compute;
	} * renders;
	size_t count;
};

void drm_list_done(struct render_list *list);

/* Whether @fd, which may be an O_PATH one, is a render node of an AMD GPU: the driver's name says
 * so, not the number. 1, 0, or -errno after a line. */
int drm_is_render_node(int fd, const struct stat *stat);

/* Notes the render node @fd (borrowed) for image @id. -EOPNOTSUPP after a line: it holds GEM
 * objects of its own. */
int drm_dump(struct render_list *list, struct dump_session *session, int fd, int id);
/* When dump_knows_all(): writes the images of the render nodes that CRIU has shown since the last
 * call. They name the process that computes through the file, and the id by which it knows the
 * GPU. Logs on error. */
int drm_write(struct render_list *list, struct dump_session *session);

/* Rebuilds the render node of image @id; the descriptor returned is the caller's. */
int drm_restore(struct restore_session *session, int id, const CriuRenderNode *image);

#endif
