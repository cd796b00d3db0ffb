/* SPDX-License-Identifier: GPL-2.0-only */
/* Allocates, maps and frees GPU memory with libhsakmt. The callers write the contents. */
#include "memory.h"

#include <errno.h>
#include <sys/mman.h>

#include <hsakmt.h>

#include "host_memory.h"

/* What libhsakmt calls the node of the system's own memory. */
#define SYSTEM_NODE 0

static HsaMemFlags memory_flags(enum memory_kind kind)
{
	HsaMemFlags flags = { .Value = 0 };

	flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
	flags.ui32.HostAccess = memory_has_cpu_access(kind);
	flags.ui32.NonPaged = kind != MEMORY_USERPTR;
	flags.ui32.NoSubstitute = kind == MEMORY_VRAM_VISIBLE || kind == MEMORY_VRAM_HIDDEN;
	/* Rings are read by an engine that wants executable memory on some generations. */
	flags.ui32.ExecuteAccess = kind == MEMORY_GTT || kind == MEMORY_USERPTR;
	return flags;
}

static int memory_register(struct memory *memory)
{
	const char *kind = memory_own_kind(memory->kind);
	int ret = host_memory_map(kind, &memory->size_bytes, &memory->address);

	if (ret < 0)
		return ret;
	if (!hsaKmtRegisterMemory(memory->address, memory->size_bytes))
		return 0;
	munmap(memory->address, memory->size_bytes);
	return -EIO;
}

int memory_obtain(const struct gpu *gpu, struct memory *memory)
{
	bool vram = memory->kind == MEMORY_VRAM_VISIBLE || memory->kind == MEMORY_VRAM_HIDDEN;

	if (memory_own_kind(memory->kind))
		return memory_register(memory);
	return hsaKmtAllocMemory(vram ? gpu->node : SYSTEM_NODE, memory->size_bytes,
				 memory_flags(memory->kind), &memory->address)
		       ? -ENOMEM
		       : 0;
}

int memory_map(const struct gpu *gpu, struct memory *memory, const struct gpus *mapped)
{
	HsaMemMapFlags flags = { .Value = 0 };
	HSAuint32 nodes[GPUS_MAX];
	HSAuint64 gpu_address = 0;

	(void)gpu;
	for (int i = 0; i < mapped->count; i++)
		nodes[i] = mapped->list[i].node;
	if (hsaKmtMapMemoryToGPUNodes(memory->address, memory->size_bytes, &gpu_address, flags,
				      (HSAuint64)mapped->count, nodes))
		return -EIO;
	memory->gpu_address = gpu_address ? (void *)(uintptr_t)gpu_address : memory->address;
	return 0;
}

int memory_release(struct memory *memory)
{
	HSAKMT_STATUS unmapped = hsaKmtUnmapMemoryToGPU(memory->address), freed;

	if (memory_own_kind(memory->kind)) {
		freed = hsaKmtDeregisterMemory(memory->address);
		munmap(memory->address, memory->size_bytes);
	} else {
		freed = hsaKmtFreeMemory(memory->address, memory->size_bytes);
	}
	return unmapped || freed ? -EIO : 0;
}
