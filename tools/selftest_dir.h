/* SPDX-License-Identifier: GPL-2.0-only */
/* The directory of a selftest, with all that it writes. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_DIR_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_DIR_H

#include <limits.h>
#include <stdint.h>

/* Makes a new directory in @parent, with an absolute path. */
int selftest_dir_make(const char *parent, char path[PATH_MAX]);
/* Removes it with all files, as far as that is possible. */
void selftest_dir_remove(const char *path);
/* Bytes of the images in the directory @path, or of their stream. */
uint64_t selftest_dir_count_images(const char *path);

#endif
