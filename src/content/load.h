/* SPDX-License-Identifier: GPL-2.0-only */
/* The steps of a restore: reads the ranges of an image, and copies them to BOs. */
#ifndef AMDGPU_PLUGIN_CONTENT_LOAD_H
#define AMDGPU_PLUGIN_CONTENT_LOAD_H

#include "content/steps.h"

extern const struct steps load_steps;

#endif
