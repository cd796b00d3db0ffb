/* SPDX-License-Identifier: GPL-2.0-only */
/* What an image says, held against itself before anything is allocated, opened or asked of the
 * kernel for it: counts, sizes, ranges, and what may not be there twice. Anybody may have written
 * the file. Fields that only we write may be missing. Whether GPUs here will do is the mapper's
 * business, and whether contents are there the image unit's.
 *
 * 0, or -EINVAL with a line that says what of which image is wrong; -ENOMEM. */
#ifndef AMDGPU_PLUGIN_IMAGE_VALIDATE_H
#define AMDGPU_PLUGIN_IMAGE_VALIDATE_H

#include "criu-amdgpu.pb-c.h"

/* The state of a process that has GPUs, as image @id has it. */
int image_validate_kfd(int id, const CriuKfd *kfd);
int image_validate_render(int id, const CriuRenderNode *render);

#endif
