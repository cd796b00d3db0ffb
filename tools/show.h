/* SPDX-License-Identifier: GPL-2.0-only */
/* The command show: what the images hold. */
#ifndef AMDGPU_PLUGIN_TOOLS_SHOW_H
#define AMDGPU_PLUGIN_TOOLS_SHOW_H

#include "tool.h"

int show_run(const struct tool_request *request);

#endif
