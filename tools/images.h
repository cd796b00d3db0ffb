/* SPDX-License-Identifier: GPL-2.0-only */
/* All state images of the directory or of the archive, in the order of their ids. */
#ifndef AMDGPU_PLUGIN_TOOLS_IMAGES_H
#define AMDGPU_PLUGIN_TOOLS_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "criu-amdgpu.pb-c.h"
#include "kernel/kfd_priv.h"

struct tool_kfd {
	int id;
	CriuKfd *message;
	/* The private data of the driver, in the memory of @message, and their queues, if the
	 * layout is known. */
	struct kfd_priv priv;
	struct kfd_priv_queue *queues;
	size_t num_queues;
};

struct tool_render {
	int id;
	CriuRenderNode *message;
};

struct tool_dmabuf {
	int id;
	CriuDmabufNode *message;
};

struct tool_images {
	struct tool_kfd *kfds;
	size_t num_kfds;
	struct tool_dmabuf *dmabufs;
	size_t num_dmabufs;
	struct tool_render *renders;
	size_t num_renders;
};

/* Reads and validates all of them. -ENOENT: the directory has no image. Logs on error. Free the
 * result with images_done(). */
int images_read(struct tool_images *ret_images);
void images_done(struct tool_images *images);
/* The first KFD image with the state of process @pid, or NULL if no image has it. */
const struct tool_kfd *images_find_process(const struct tool_images *images, uint32_t pid);

#endif
