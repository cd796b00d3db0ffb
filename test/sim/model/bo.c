// SPDX-License-Identifier: GPL-2.0-only
/* Buffers: their kind, their charge, and the memory that they show. The front end has the bytes. */
#include "bo.h"
#include "abi_drm.h"

void sim_bo_init(struct sim_bo *bo, struct sim_gpu *gpu, u64 size_bytes)
{
	memset(bo, 0, sizeof(*bo));
	bo->gpu = gpu;
	bo->size = size_bytes;
	bo->alignment = SIM_PAGE_SIZE;
	sim_lock_init(&bo->lock);
	sim_count(gpu->sim, SIM_COUNT_BOS, 1);
}

void sim_bo_done(struct sim_bo *bo)
{
	if (bo->kind == SIM_BO_MEMORY && !bo->origin)
		sim_bo_data_done(bo);
	free(bo->metadata);
	if (bo->kind == SIM_BO_USERPTR)
		sim_count(bo->gpu->sim, SIM_COUNT_USERPTRS, -1);
	if (bo->origin)
		sim_os_bo_put(bo->origin);
	if (bo->charged)
		sim_memory_uncharge(bo->gpu, bo->charged_vram, bo->charged_limited, bo->size);
	sim_count(bo->gpu->sim, SIM_COUNT_BOS, -1);
}

static int charge(struct sim_bo *bo, bool vram, bool limited)
{
	int ret = sim_memory_charge(bo->gpu, vram, limited, bo->size);

	if (ret < 0)
		return ret;
	bo->charged = true;
	bo->charged_vram = vram;
	bo->charged_limited = limited;
	return 0;
}

int sim_bo_set_memory(struct sim_bo *bo, const struct sim_bo_memory *memory)
{
	struct sim *sim = bo->gpu->sim;
	int ret;

	ret = charge(bo, (memory->domains & AMDGPU_GEM_DOMAIN_VRAM) != 0, memory->limited);
	if (ret < 0)
		return ret;
	bo->domains = memory->domains;
	bo->flags = memory->flags;
	bo->background = memory->poisoned ? sim->poison_page : sim->zero_page;
	ret = sim_bo_data_init(bo);
	if (ret == 0)
		bo->kind = SIM_BO_MEMORY;
	return ret;
}

int sim_bo_set_user(struct sim_bo *bo, u64 addr, bool readonly, bool limited)
{
	int ret;

	ret = charge(bo, false, limited);
	if (ret < 0)
		return ret;
	sim_count(bo->gpu->sim, SIM_COUNT_USERPTRS, 1);
	bo->kind = SIM_BO_USERPTR;
	bo->domains = AMDGPU_GEM_DOMAIN_GTT;
	bo->user_addr = addr;
	bo->user_readonly = readonly;
	return 0;
}

void sim_bo_set_origin(struct sim_bo *bo, struct sim_bo *origin)
{
	sim_os_bo_get(origin);
	bo->kind = SIM_BO_MEMORY;
	bo->origin = origin;
	/* amdgpu_dma_buf.c: amdgpu_dma_buf_create_obj() (6.12) */
	bo->domains = AMDGPU_GEM_DOMAIN_GTT;
	bo->flags = origin->flags & (AMDGPU_GEM_CREATE_CPU_GTT_USWC | DRM_BO_COHERENT |
				     DRM_BO_EXT_COHERENT | DRM_BO_UNCACHED);
	bo->flags |= AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE;
}

bool sim_bo_is_refused_in_hive(const struct sim_bo *bo)
{
	const struct sim_bo *origin = bo->origin;

	return origin && origin->domains & AMDGPU_GEM_DOMAIN_VRAM && bo->gpu->hive &&
	       bo->gpu->hive == origin->gpu->hive && !SIM_KNOB(bo->gpu->sim, hive_imports);
}

/* amdgpu_object.c: amdgpu_bo_fault_reserve_notify() (6.1 to 7.3) */
void sim_bo_touch(struct sim_bo *bo)
{
	(void)__atomic_or_fetch(&bo->flags, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED,
				__ATOMIC_RELAXED);
}

struct sim_bo *sim_bo_storage(struct sim_bo *bo)
{
	while (bo->origin)
		bo = bo->origin;
	return bo;
}
