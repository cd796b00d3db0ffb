// SPDX-License-Identifier: GPL-2.0-only
/* What all programs do with memory of any kind, and say of it. */
#include "memory.h"

#include <string.h>

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
	return (struct gpus){ .list = { *gpu }, .count = 1 };
}

int memory_alloc(struct report *report, enum memory_kind kind, size_t size_bytes,
		 const struct gpu *gpu, const struct gpus *mapped, struct memory *ret_memory)
{
	struct memory memory = { .kind = kind, .size_bytes = size_bytes };
	int ret = memory_obtain(gpu, &memory);

	if (ret < 0)
		return report_fail(report, ret, "GPU %d: no %zu bytes of %s: %s", gpu->index,
				   size_bytes, memory_kind_name(kind), strerror(-ret));
	ret = memory_map(gpu, &memory, mapped);
	if (ret < 0) {
		(void)memory_release(&memory);
		return report_fail(report, ret, "GPU %d: cannot map %zu bytes of %s: %s",
				   gpu->index, size_bytes, memory_kind_name(kind), strerror(-ret));
	}
	*ret_memory = memory;
	return 0;
}

void memory_free(struct report *report, struct memory *memory)
{
	const void *address = memory->address;
	int ret = address ? memory_release(memory) : 0;

	memory->address = NULL;
	if (ret < 0)
		report_fail(report, ret, "cannot free %s at %p: %s", memory_kind_name(memory->kind),
			    address, strerror(-ret));
}
