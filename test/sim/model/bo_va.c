// SPDX-License-Identifier: GPL-2.0-only
/* What keeps the mappings of a buffer in page tables: each GEM handle, and each buffer of KFD that
 * was mapped there. amdgpu_gem.c: amdgpu_gem_object_open(), amdgpu_gem_object_close();
 * amdgpu_amdkfd_gpuvm.c: kfd_mem_attach(), kfd_mem_detach() (6.12, 7.3). vm.c has the mappings. */
#include "vm.h"

struct sim_bo_va {
	struct sim_bo_va *next; /* of the same buffer */
	struct sim_vm *vm;
	u32 references;
};

/* Under bo->lock. The place of the entry, or the end of the list. */
static struct sim_bo_va **find(struct sim_bo *bo, const struct sim_vm *vm)
{
	struct sim_bo_va **at = &bo->vas;

	while (*at && (*at)->vm != vm)
		at = &(*at)->next;
	return at;
}

int sim_bo_va_get(struct sim_bo *bo, struct sim_vm *vm)
{
	struct sim_bo_va *fresh = calloc(1, sizeof(*fresh)), **at;

	if (!fresh)
		return -ENOMEM;
	fresh->vm = vm;
	sim_lock(&bo->lock);
	at = find(bo, vm);
	if (!*at) {
		*at = fresh;
		fresh = NULL;
	}
	(*at)->references++;
	sim_unlock(&bo->lock);
	free(fresh);
	return 0;
}

void sim_bo_va_put(struct sim_bo *bo, struct sim_vm *vm)
{
	struct sim_bo_va **at, *last = NULL;

	sim_lock(&bo->lock);
	at = find(bo, vm);
	if (*at && --(*at)->references == 0) {
		last = *at;
		*at = last->next;
	}
	sim_unlock(&bo->lock);
	if (!last)
		return;
	sim_vm_unmap_bo(vm, bo);
	free(last);
}
