/* SPDX-License-Identifier: GPL-2.0-only */
/* What the images hold, for programs. */
#ifndef AMDGPU_PLUGIN_TOOLS_SHOW_JSON_H
#define AMDGPU_PLUGIN_TOOLS_SHOW_JSON_H

#include "images.h"

/* Prints JSON on standard output. Returns an enum tool_status. */
int show_json(const struct tool_images *images);

#endif
