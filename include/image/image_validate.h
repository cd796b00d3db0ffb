/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks what an image says before the plugin allocates, opens or asks the kernel for anything:
 * counts, sizes, ranges, and duplicates. An image may come from any program. Fields that only this
 * plugin writes may be missing. map_decide() decides whether the GPUs here can replace those of the
 * image, and image_open_pages() checks that the contents exist.
 *
 * A restore checks an image in this order: kind of file, length and checksum (image.c), memory and
 * unknown fields (unpack.c), the values (here), handles in the private data (image_priv.c), and
 * then the queues of the task (queue_check.c).
 *
 * The functions return 0, or -EINVAL, logged with image and value, or -ENOMEM. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_VALIDATE_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_VALIDATE_H

#include <stdbool.h>

#include "criu-amdgpu.pb-c.h"

/* The state of a process that has GPUs, in image @id. */
int image_validate_kfd(int id, const CriuKfd *kfd);
int image_validate_render(int id, const CriuRenderNode *render);
int image_validate_dmabuf(int id, const CriuDmabufNode *dmabuf);

/* The fields of the message saved_on, which says where an image was taken: the texts, and amdgpu's
 * parameters, by the names of their files. */
#define SAVED_ON_TEXTS(X) X(kernel) X(driver_version) X(driver_source) X(plugin)
#define SAVED_ON_PARAMETERS(X) \
	X(cwsr_enable) X(noretry) X(sched_policy) X(vm_update_mode) X(user_queue)

/* The longest text, with its end. A kernel's release has 65 bytes. */
#define SAVED_ON_TEXT 128
/* Whether @text is short enough, and programs can print it. */
bool image_validate_text(const char *text);

#endif
