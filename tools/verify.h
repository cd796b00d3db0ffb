/* SPDX-License-Identifier: GPL-2.0-only */
/* The command verify: whether all images are whole. */
#ifndef AMDGPU_PLUGIN_TOOLS_VERIFY_H
#define AMDGPU_PLUGIN_TOOLS_VERIFY_H

#include "tool.h"

int verify_run(const struct tool_request *request);

#endif
