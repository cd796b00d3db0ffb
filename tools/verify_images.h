/* SPDX-License-Identifier: GPL-2.0-only */
/* The state images of a dump compared with each other, and with CRIU's list of files. */
#ifndef AMDGPU_PLUGIN_TOOLS_VERIFY_IMAGES_H
#define AMDGPU_PLUGIN_TOOLS_VERIFY_IMAGES_H

#include <stdbool.h>

#include "images.h"

/* After a line: -EINVAL, an image needs another that is not there, two are from two dumps, or
 * CRIU's files.img is damaged; -ENOENT, a file of files.img has no image. Warns, unless @quiet, if
 * the directory has no files.img. */
int verify_images(const struct tool_images *images, bool quiet);

#endif
