/* SPDX-License-Identifier: GPL-2.0-only */
/* The state images of a dump compared with each other. */
#ifndef AMDGPU_PLUGIN_TOOLS_VERIFY_IMAGES_H
#define AMDGPU_PLUGIN_TOOLS_VERIFY_IMAGES_H

#include "images.h"

/* 0; -EINVAL, logged: an image needs another that is not there, or two are from two dumps. */
int verify_images(const struct tool_images *images);

#endif
