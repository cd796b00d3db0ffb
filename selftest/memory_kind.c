// SPDX-License-Identifier: GPL-2.0-only
/* What all programs say of the kinds of memory. */
#include "memory.h"

const char *memory_kind_name(enum memory_kind kind)
{
	static const char *const names[] = {
		[MEMORY_VRAM_VISIBLE] = "visible VRAM",
		[MEMORY_VRAM_HIDDEN] = "hidden VRAM",
		[MEMORY_GTT] = "GTT",
		[MEMORY_USERPTR] = "userptr",
		[MEMORY_REGISTERED] = "registered",
		[MEMORY_MEMFD] = "memfd",
		[MEMORY_UNLINKED] = "unlinked file",
	};

	return names[kind];
}

bool memory_has_cpu_access(enum memory_kind kind)
{
	return kind != MEMORY_VRAM_HIDDEN;
}

const char *memory_own_kind(enum memory_kind kind)
{
	switch (kind) {
	case MEMORY_REGISTERED:
		return "private";
	case MEMORY_MEMFD:
		return "memfd";
	case MEMORY_UNLINKED:
		return "unlinked";
	default:
		return NULL;
	}
}

struct gpus memory_only(const struct gpu *gpu)
{
	struct gpus only = { .count = 1 };

	only.list[0] = *gpu;
	return only;
}
