/* SPDX-License-Identifier: GPL-2.0-only */
/* The private data of the driver in a KFD image. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_PRIV_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_PRIV_H

#include "criu-amdgpu.pb-c.h"
#include "kernel/kfd_priv.h"

/* The data, in the memory of @kfd, with its layout. */
struct kfd_priv image_priv_of(const CriuKfd *kfd);
/* The same if the @layout is known. */
struct kfd_priv image_priv_in(const CriuKfd *kfd, const struct kfd_layout *layout);

/* Refuses records by which RESTORE would crash some drivers, and handles that would cost a restore
 * minutes, and data that can be read in two ways. Data of an unknown layout passes. @kfd is the
 * image @id, whose BOs and GPUs are valid. -EINVAL, logged. */
int image_priv_validate(int id, const CriuKfd *kfd);

#endif
