/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process must have again after a restore, beside what its memory holds. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_STATE_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether the process has the file at @path open. */
bool selftest_state_has_open(pid_t pid, const char *path);
/* Lines with the descriptors, the threads, and the mappings of devices, of the process and its
 * descendants. Two render nodes are called by each other's minors, @one and @other, if these are
 * not 0. The caller frees the text. */
int selftest_state_read(pid_t pid, uint32_t one, uint32_t other, char **ret_text);
/* The first line that only one of the texts has, in @line, which begins with "lost" or "new". NULL:
 * both have the same lines. */
const char *selftest_state_compare(const char *before, const char *after, char *line, size_t size);

#endif
