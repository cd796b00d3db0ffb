/* SPDX-License-Identifier: GPL-2.0-only */
/* The command fit: whether the GPUs of the images can be mapped to those of a machine. */
#ifndef AMDGPU_PLUGIN_TOOLS_FIT_H
#define AMDGPU_PLUGIN_TOOLS_FIT_H

#include "tool.h"

int fit_run(const struct tool_request *request);

#endif
