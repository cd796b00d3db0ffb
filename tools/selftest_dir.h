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

/* The speed of its storage when no GPU takes part. */
struct selftest_dir_speed {
	double write_mib_s; /* to the page cache, as a dump writes */
	double flush_mib_s; /* until the storage has it */
	double read_mib_s;  /* from the storage, as far as the kernel lets go of its pages */
};

/* Writes and reads a file of @bytes in the directory, and removes it. */
int selftest_dir_measure(const char *path, uint64_t bytes, struct selftest_dir_speed *ret_speed);

#endif
