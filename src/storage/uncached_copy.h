/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies to memory that a device reads next, with stores that bypass the caches of the processors:
 * a copy engine is slow to read what caches hold. Elsewhere than on x86 this is memcpy().
 */
#ifndef AMDGPU_PLUGIN_STORAGE_UNCACHED_COPY_H
#define AMDGPU_PLUGIN_STORAGE_UNCACHED_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the processor has such stores. */
bool uncached_copy_exists(void);
/* @to is at a multiple of 16. */
void uncached_copy_bytes(void *to, const void *from, size_t size);
/* A thread calls this after its copies, before a device may read them. */
void uncached_copy_end(void);

#endif
