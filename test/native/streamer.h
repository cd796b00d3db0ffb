/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEST_NATIVE_STREAMER_H
#define TEST_NATIVE_STREAMER_H

#include <stdbool.h>

/* From here on CRIU streams its images: to a folder below @directory, or from
 * there, each once. -errno. */
int streamer_start(const char *directory, bool captures);
/* Waits until all has come to its end. */
void streamer_stop(void);

#endif
