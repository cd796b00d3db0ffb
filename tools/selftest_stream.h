/* SPDX-License-Identifier: GPL-2.0-only */
/* criu-image-streamer, through which a dump or a restore with --stream has its images. The stream
 * is a file. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_STREAM_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_STREAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define SELFTEST_STREAMER "criu-image-streamer"

/* Where the program is, or false: it is not installed. */
bool selftest_stream_find(char path[PATH_MAX]);
/* Starts it for the images in @dir, and waits until CRIU can begin. With @is_dump it writes the
 * stream, and otherwise it reads it. The stream and the streamer's log are files of @dir. Errors
 * are those of selftest_run_wait(), and -ESRCH: it has ended before. */
int selftest_stream_start(const char *streamer, const char *dir, bool is_dump, double seconds,
			  pid_t *ret_pid);

#endif
