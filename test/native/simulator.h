/* SPDX-License-Identifier: GPL-2.0-only */
/* Asks the simulator, and sets its knobs. */
#ifndef AMDGPU_PLUGIN_TEST_NATIVE_SIMULATOR_H
#define AMDGPU_PLUGIN_TEST_NATIVE_SIMULATOR_H

#include <stddef.h>

/* The simulator's files, see test/sim/README.md: 0 or the length, or -errno. Without a simulator,
 * the process prints a line and exits. */
int simulator_write(const char *file, const char *text);
int simulator_read(const char *file, char *text, size_t size);
/* The whole text, which the caller frees, also after an error. */
int simulator_read_all(const char *file, char **ret_text);
/* Looks up a function of the simulator. */
void *simulator_find(const char *name);

#endif
