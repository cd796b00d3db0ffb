/* SPDX-License-Identifier: GPL-2.0-only */
/* The state images of a dump compared with CRIU's list of files. */
#ifndef AMDGPU_PLUGIN_TOOLS_VERIFY_FILES_H
#define AMDGPU_PLUGIN_TOOLS_VERIFY_FILES_H

#include <stdbool.h>

#include "images.h"

/* Whether each file that CRIU has saved by a plugin, according to its files.img, has an image of
 * this plugin. 0 also, after a warning unless @quiet, if the directory has no files.img. After a
 * line: -ENOENT, an image is missing; -EINVAL, files.img is damaged. */
int verify_files(const struct tool_images *images, bool quiet);

#endif
