/* SPDX-License-Identifier: GPL-2.0-only */
/* Allocates, maps and frees GPU memory with libhsakmt. The callers write the contents. */
#include "memory.h"

#include <errno.h>
#include <string.h>
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

static HSAKMT_STATUS memory_register(struct memory *memory)
{
	const char *kind = memory_own_kind(memory->kind);
	HSAKMT_STATUS status;

	if (host_memory_map(kind, &memory->size_bytes, &memory->address) < 0)
		return HSAKMT_STATUS_NO_MEMORY;
	status = hsaKmtRegisterMemory(memory->address, memory->size_bytes);
	if (status)
		munmap(memory->address, memory->size_bytes);
	return status;
}

static HSAKMT_STATUS memory_obtain(const struct gpu *gpu, struct memory *memory)
{
	bool vram = memory->kind == MEMORY_VRAM_VISIBLE || memory->kind == MEMORY_VRAM_HIDDEN;

	if (memory_own_kind(memory->kind))
		return memory_register(memory);
	return hsaKmtAllocMemory(vram ? gpu->node : SYSTEM_NODE, memory->size_bytes,
				 memory_flags(memory->kind), &memory->address);
}

static HSAKMT_STATUS memory_release(struct memory *memory)
{
	HSAKMT_STATUS status;

	if (!memory_own_kind(memory->kind))
		return hsaKmtFreeMemory(memory->address, memory->size_bytes);
	status = hsaKmtDeregisterMemory(memory->address);
	munmap(memory->address, memory->size_bytes);
	return status;
}

static HSAKMT_STATUS memory_map(struct memory *memory, const struct gpus *mapped)
{
	HsaMemMapFlags flags = { .Value = 0 };
	HSAuint32 nodes[GPUS_MAX];
	HSAuint64 gpu_address = 0;
	HSAKMT_STATUS status;

	for (int i = 0; i < mapped->count; i++)
		nodes[i] = mapped->list[i].node;
	memory->gpu_address = memory->address;
	status = hsaKmtMapMemoryToGPUNodes(memory->address, memory->size_bytes, &gpu_address, flags,
					   (HSAuint64)mapped->count, nodes);
	if (status == 0 && gpu_address)
		memory->gpu_address = (void *)(uintptr_t)gpu_address;
	return status;
}

int memory_alloc(struct report *report, enum memory_kind kind, size_t size_bytes,
		 const struct gpu *gpu, const struct gpus *mapped, struct memory *ret_memory)
{
	struct memory memory = { .kind = kind, .size_bytes = size_bytes };
	HSAKMT_STATUS status;

	status = memory_obtain(gpu, &memory);
	if (status)
		return report_fail(report, -ENOMEM, "GPU %d: no %zu bytes of %s: %d", gpu->index,
				   size_bytes, memory_kind_name(kind), status);
	status = memory_map(&memory, mapped);
	if (status) {
		(void)memory_release(&memory);
		return report_fail(report, -EIO, "GPU %d: cannot map %zu bytes of %s: %d",
				   gpu->index, size_bytes, memory_kind_name(kind), status);
	}
	*ret_memory = memory;
	return 0;
}

void memory_free(struct report *report, struct memory *memory)
{
	HSAKMT_STATUS status;

	if (!memory->address)
		return;
	status = hsaKmtUnmapMemoryToGPU(memory->address);
	if (status)
		report_fail(report, -EIO, "cannot unmap %s at %p: %d",
			    memory_kind_name(memory->kind), memory->address, status);
	status = memory_release(memory);
	if (status)
		report_fail(report, -EIO, "cannot free %s at %p: %d",
			    memory_kind_name(memory->kind), memory->address, status);
	memory->address = NULL;
}
