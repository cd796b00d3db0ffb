/* SPDX-License-Identifier: GPL-2.0-only */
/* XXH3 with the widest vectors that the processor has. */
#ifndef AMDGPU_PLUGIN_CONTENT_XXH3_H
#define AMDGPU_PLUGIN_CONTENT_XXH3_H

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#endif
