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

/* A render node of the dump. */
struct dumped_render {
	int id;
	/* Kept while it is unknown whether this is the file of some process's compute VM. */
	int fd;
	uint32_t render_minor;
	/* Number of its GEM handles, 0 if the kernel does not list them. */
	size_t num_handles;
	/* Its image waits for that too, as a stream cannot be written again. */
	bool unwritten;
	/* The GPU's id in the image. */
	uint32_t gpu_id;
};

/* The render nodes of a dump that may have to be written again. Begins all zero. */
struct render_list {
	struct dumped_render *renders;
	size_t count;
};

void drm_list_done(struct render_list *list);

/* Whether @fd, which may be an O_PATH one, is a render node of an AMD GPU: the driver's name says
 * so, not the number. 1, 0, or -errno after a line. */
int drm_is_render_node(int fd, const struct stat *stat);

/* Saves the render node @fd (borrowed) as image @id. -EOPNOTSUPP after a line: it holds GEM objects
 * of its own. */
int drm_dump(struct render_list *list, struct dump_session *session, int fd, int id);

/* Completes the images of the render nodes already dumped: the compute files of @process, and the
 * ids by which the process knows its GPUs. */
int drm_note_process(struct render_list *list, struct dump_session *session,
		     struct dumped_process *process);
/* No more KFD processes will come: writes the images that have waited for them. */
int drm_finish(struct render_list *list, struct dump_session *session);

/* Rebuilds the render node of image @id; the descriptor returned is the caller's. */
int drm_restore(struct restore_session *session, int id, const CriuRenderNode *image);

#endif
