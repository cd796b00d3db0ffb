/* SPDX-License-Identifier: GPL-2.0-only */
/* All state images of the directory or of the archive, by kind, and then in the order of their ids.
 */
#ifndef AMDGPU_PLUGIN_TOOLS_IMAGES_H
#define AMDGPU_PLUGIN_TOOLS_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "kernel/kfd_priv.h"

struct tool_image {
	int id;
	enum image_kind kind;
	/* Valid for the kind, and @message for all of them. */
	union {
		ProtobufCMessage *message;
		CriuKfd *kfd;
		CriuRenderNode *render;
		CriuDmabufNode *dmabuf;
	};
	/* Of a process: the private data of the driver, in the memory of the message, and their
	 * queues, if the layout is known. */
	struct kfd_priv priv;
	struct kfd_priv_queue *queues;
	size_t num_queues;
};

struct tool_images {
	struct tool_image *list;
	size_t count;
};

/* Reads and validates all of them. -ENOENT: the directory has no image. Logs on error. Free the
 * result with images_done(). */
int images_read(struct tool_images *ret_images);
void images_done(struct tool_images *images);
/* The next image of this kind behind @last, or the first one if that is NULL. */
const struct tool_image *images_next(const struct tool_images *images, enum image_kind kind,
				     const struct tool_image *last);
#define IMAGES_FOR_EACH(images, image, kind) \
	for (const struct tool_image *(image) = NULL; ((image) = images_next(images, kind, image));)
/* The first KFD image with the state of process @pid, or NULL if no image has it. */
const struct tool_image *images_find_process(const struct tool_images *images, uint32_t pid);

#endif
