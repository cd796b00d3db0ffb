/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks what an image says before the plugin allocates, opens or asks the kernel for anything:
 * counts, sizes, ranges, and duplicates. An image may come from any program. Fields that only this
 * plugin writes may be missing. map_decide() decides whether the GPUs here can replace those of the
 * image, and image_open_pages() checks that the contents exist.
 *
 * The functions return 0, or -EINVAL, logged with image and value, or -ENOMEM. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_VALIDATE_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_VALIDATE_H

#include "criu-amdgpu.pb-c.h"

/* The state of a process that has GPUs, in image @id. */
int image_validate_kfd(int id, const CriuKfd *kfd);
int image_validate_render(int id, const CriuRenderNode *render);
int image_validate_dmabuf(int id, const CriuDmabufNode *dmabuf);

#endif
