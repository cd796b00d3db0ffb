// SPDX-License-Identifier: GPL-2.0-only
/* GPU memory by plain ioctls. The callers write the contents. */
#include "memory.h"

#include <errno.h>
#include <sys/mman.h>

#include "host_memory.h"
#include "process.h"

static struct raw_bo bo_of(const struct memory *memory)
{
	return (struct raw_bo){ .handle = memory->handle,
				.address = memory->address,
				.size = memory->size_bytes };
}

static uint32_t flags_of(enum memory_kind kind)
{
	switch (kind) {
	case MEMORY_VRAM_VISIBLE:
		return RAW_VRAM;
	case MEMORY_VRAM_HIDDEN:
		return RAW_VRAM & ~(uint32_t)KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
	case MEMORY_GTT:
		return RAW_GTT;
	default:
		return RAW_USERPTR;
	}
}

/* Maps for the CPU what the driver has allocated, without access if the CPU has none: a runtime
 * reserves the address so. */
static int map_for_cpu(const struct gpu *gpu, const struct memory *memory, const struct raw_bo *bo)
{
	int access = memory_has_cpu_access(memory->kind) ? PROT_READ | PROT_WRITE : PROT_NONE;

	if (mmap(bo->address, bo->size, access, MAP_SHARED | MAP_FIXED,
		 process_get()->render[gpu->index], (off_t)bo->mmap_offset) == MAP_FAILED)
		return -errno;
	return 0;
}

int memory_obtain(const struct gpu *gpu, struct memory *memory)
{
	struct raw_process *process = process_get();
	const char *own = memory_own_kind(memory->kind);
	void *address = NULL;
	struct raw_bo bo;
	int ret = 0;

	if (memory->kind == MEMORY_USERPTR)
		own = "private";
	if (own)
		ret = host_memory_map(own, &memory->size_bytes, &address);
	if (ret < 0)
		return ret;
	ret = raw_alloc(process, process->gpu[gpu->index].gpu_id, flags_of(memory->kind),
			memory->size_bytes, address, &bo);
	if (ret < 0)
		return ret;
	memory->handle = bo.handle;
	memory->address = memory->gpu_address = bo.address;
	return own ? 0 : map_for_cpu(gpu, memory, &bo);
}

/* The driver refuses to map VRAM to a GPU that does not reach it (kfd_mem_attach() in the kernel's
 * amdgpu_amdkfd_gpuvm.c): most GPUs of one machine do not reach each other's. */
static bool is_reached(const struct gpu *gpu, enum memory_kind kind, int index)
{
	bool is_vram = kind == MEMORY_VRAM_VISIBLE || kind == MEMORY_VRAM_HIDDEN;

	return !is_vram || gpu->reached_by >> index & 1;
}

int memory_map(const struct gpu *gpu, struct memory *memory, const struct gpus *mapped)
{
	struct raw_process *process = process_get();
	const struct raw_bo bo = bo_of(memory);
	int ret = 0;

	for (int i = 0; ret == 0 && i < mapped->count; i++) {
		int index = mapped->list[i].index;

		if (!is_reached(gpu, memory->kind, index))
			continue;
		ret = raw_map(process, &bo, process->gpu[index].gpu_id);
		if (ret == 0)
			memory->mapped |= 1ull << index;
	}
	return ret;
}

int memory_release(struct memory *memory)
{
	struct raw_process *process = process_get();
	const struct raw_bo bo = bo_of(memory);
	int ret = 0;

	for (int i = 0; ret == 0 && i < process->gpus; i++) {
		if (memory->mapped >> i & 1)
			ret = raw_unmap(process, &bo, process->gpu[i].gpu_id);
	}
	if (ret == 0)
		ret = raw_free(process, &bo);
	(void)munmap(memory->address, memory->size_bytes);
	return ret;
}
