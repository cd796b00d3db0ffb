/* SPDX-License-Identifier: GPL-2.0-only */
/* The steps of a dump: copies ranges from BOs, and writes them to an image. */
#ifndef AMDGPU_PLUGIN_CONTENT_SAVE_H
#define AMDGPU_PLUGIN_CONTENT_SAVE_H

#include "content/steps.h"

extern const struct steps save_steps;

#endif
