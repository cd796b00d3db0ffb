// SPDX-License-Identifier: GPL-2.0-only
/* KFD's buffers and their mappings on GPUs. RESTORE also uses sim_mem_new(). kfd_share.c has
 * dma-bufs, bo.c has contents. */
#include "process.h"

#define TYPES    (KFD_MEM_VRAM | KFD_MEM_GTT | KFD_MEM_USERPTR | KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP)
#define TAG_BITS (0x7full << 57)

static bool has_content(u32 flags)
{
	return flags & (KFD_MEM_VRAM | KFD_MEM_GTT);
}

u64 sim_mem_handle(const struct sim_mem *mem)
{
	return (u64)mem->pdd->user_gpu_id << 32 | mem->id;
}

struct sim_mem *sim_mem_find(struct sim_process *process, u64 handle)
{
	struct sim_pdd *pdd = sim_process_pdd(process, (u32)(handle >> 32));

	return pdd ? sim_ids_get(&pdd->mems, (u32)handle) : NULL;
}

/* kfd_process_device_translate_handle() in amdkfd/kfd_process.c of the out-of-tree driver reads
 * through the missing buffer. FREE looks it up in another way. */
void sim_mem_note_missing(struct sim_process *process, const char *caller)
{
	if (SIM_KNOB(process->sim, unchecked_handles))
		sim_violation(process->sim, "%s: no buffer has the handle: oops", caller);
}

/* The first type flag counts, in the order of the bits. */
static u32 type_of(u32 flags)
{
	return flags & TYPES & -(flags & TYPES);
}

static int check_wanted(const struct sim_mem_wanted *wanted)
{
	if (!wanted->size || !type_of(wanted->flags))
		return -EINVAL;
	switch (type_of(wanted->flags)) {
	case KFD_MEM_DOORBELL:
		return wanted->size == KFD_DOORBELL_SLICE ? 0 : -EINVAL;
	case KFD_MEM_MMIO_REMAP:
		return wanted->size == SIM_PAGE_SIZE ? 0 : -EINVAL;
	case KFD_MEM_USERPTR:
		return wanted->user_addr ? 0 : -EINVAL;
	default:
		return 0;
	}
}

/* amdgpu_amdkfd_gpuvm.c: amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu() (6.12) asks for
 * CPU_ACCESS_REQUIRED if the flags have PUBLIC, but amdgpu_object.c: amdgpu_bo_create() drops that
 * (6.1 to 7.3). The buffer therefore does not show whether it was PUBLIC. */
static u64 flags_of_bo(u32 flags)
{
	u64 bo_flags = AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE;

	if (type_of(flags) == KFD_MEM_VRAM)
		bo_flags |= AMDGPU_GEM_CREATE_VRAM_CLEARED;
	if (type_of(flags) == KFD_MEM_VRAM && flags & KFD_MEM_CONTIGUOUS)
		bo_flags |= AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS;
	if (flags & KFD_MEM_COHERENT)
		bo_flags |= DRM_BO_COHERENT;
	if (flags & KFD_MEM_EXT_COHERENT)
		bo_flags |= DRM_BO_EXT_COHERENT;
	if (flags & KFD_MEM_UNCACHED)
		bo_flags |= DRM_BO_UNCACHED;
	return bo_flags;
}

static int fill_bo(struct sim_bo *bo, const struct sim_mem_wanted *wanted)
{
	u32 type = type_of(wanted->flags);
	struct sim_bo_memory memory = {
		.domains = type == KFD_MEM_VRAM ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT,
		.flags = flags_of_bo(wanted->flags),
		.limited = true,
		.poisoned = wanted->poisoned,
	};

	bo->kfd_flags = wanted->flags;
	if (has_content(type))
		return sim_bo_set_memory(bo, &memory);
	if (type == KFD_MEM_USERPTR)
		return sim_bo_set_user(bo, wanted->user_addr, false, true);
	return 0;
}

int sim_mem_enter(struct sim_mem *mem, const u32 *id)
{
	struct sim_ids *mems = &mem->pdd->mems;
	int ret;

	mem->id = id ? *id : 0;
	if (id && sim_ids_add_at(mems, mem, *id) < 0)
		return -ENOMEM;
	if (!id && sim_ids_add(mems, mem, 0x7fffffff, &mem->id) < 0)
		return -EFAULT;
	ret = sim_os_bo_allow(mem->bo, mem->pdd->render);
	if (ret < 0)
		(void)sim_ids_remove(mems, mem->id);
	else
		sim_count(mem->pdd->gpu->sim, SIM_COUNT_KFD_BOS, 1);
	return ret;
}

/* The part that is undone by a put of the buffer and a free of @mem. */
static int mem_fill(struct sim_mem *mem, const struct sim_mem_wanted *wanted)
{
	u64 size = (wanted->size + SIM_PAGE_SIZE - 1) & ~(SIM_PAGE_SIZE - 1);
	struct sim_pdd *pdd = mem->pdd;
	int ret;

	mem->bo = sim_os_bo_new(pdd->gpu, size);
	if (!mem->bo)
		return -ENOMEM;
	ret = fill_bo(mem->bo, wanted);
	if (ret == 0)
		ret = sim_mem_enter(mem, wanted->fixed_id ? &wanted->id : NULL);
	if (ret < 0)
		return ret;
	ret = sim_mem_name(mem);
	if (ret < 0) {
		sim_os_bo_disallow(mem->bo, pdd->render);
		(void)sim_ids_remove(&pdd->mems, mem->id);
		sim_count(pdd->gpu->sim, SIM_COUNT_KFD_BOS, -1);
	}
	return ret;
}

int sim_mem_new(struct sim_pdd *pdd, const struct sim_mem_wanted *wanted, struct sim_mem **ret_mem)
{
	struct sim_mem *mem;
	int ret;

	ret = check_wanted(wanted);
	if (ret < 0)
		return ret;
	if (!pdd->render)
		return -ENODEV;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->pdd = pdd;
	mem->va = wanted->va;
	mem->flags = wanted->flags;
	mem->user_addr = type_of(wanted->flags) == KFD_MEM_USERPTR ? wanted->user_addr : 0;
	ret = mem_fill(mem, wanted);
	if (ret < 0) {
		if (mem->bo)
			sim_os_bo_put(mem->bo);
		free(mem);
		return ret;
	}
	*ret_mem = mem;
	return 0;
}

static void mem_unmap(struct sim_mem *mem, struct sim_pdd *pdd)
{
	enum sim_vm_origin origin;

	(void)sim_vm_unmap(&pdd->render->vm, mem->bo, mem->va, &origin);
	mem->mapped &= ~(1ull << pdd->index);
}

void sim_mem_free(struct sim_mem *mem)
{
	struct sim_process *process = mem->pdd->process;
	u32 i;

	for (i = 0; i < process->num_pdds; i++) {
		if (mem->mapped & 1ull << i)
			mem_unmap(mem, process->pdds[i]);
		if (mem->attached & 1ull << i)
			sim_bo_va_put(mem->bo, &process->pdds[i]->render->vm);
	}
	(void)sim_ids_remove(&mem->pdd->mems, mem->id);
	sim_os_bo_disallow(mem->bo, mem->pdd->render);
	sim_mem_unname(mem);
	if (mem->ipc)
		sim_ipc_put(process->sim, mem->ipc);
	sim_mem_drop_dmabuf(mem);
	sim_os_bo_put(mem->bo);
	sim_count(process->sim, SIM_COUNT_KFD_BOS, -1);
	free(mem);
}

/* amdgpu_amdkfd_gpuvm.c: amdgpu_amdkfd_gpuvm_map_memory_to_gpu() attaches once; only a free
 * detaches (6.12, 7.3) */
static int attach(struct sim_mem *mem, struct sim_pdd *pdd)
{
	int ret = 0;

	if (!(mem->attached & 1ull << pdd->index))
		ret = sim_bo_va_get(mem->bo, &pdd->render->vm);
	if (ret == 0)
		mem->attached |= 1ull << pdd->index;
	return ret;
}

int sim_mem_map(struct sim_mem *mem, struct sim_pdd *pdd)
{
	struct sim_mapping mapping = {
		.start = mem->va,
		.end = mem->va + mem->bo->size,
		.bo = mem->bo,
		.flags = AMDGPU_VM_PAGE_READABLE,
		.origin = SIM_VM_KFD,
	};
	int ret;

	if (mem->mapped & 1ull << pdd->index)
		return 0;
	if (mem->flags & KFD_MEM_WRITABLE)
		mapping.flags |= AMDGPU_VM_PAGE_WRITEABLE;
	if (mem->flags & KFD_MEM_EXECUTABLE)
		mapping.flags |= AMDGPU_VM_PAGE_EXECUTABLE;
	ret = attach(mem, pdd);
	if (ret == 0)
		ret = sim_vm_map(&pdd->render->vm, &mapping);
	if (ret == 0)
		mem->mapped |= 1ull << pdd->index;
	return ret;
}

static int check_alloc(struct sim_process *process,
		       const struct kfd_ioctl_alloc_memory_of_gpu_args *io, struct sim_pdd *pdd)
{
	bool nowhere = io->va_addr == 0 && type_of(io->flags) == KFD_MEM_VRAM;

	if (!io->size)
		return -EINVAL;
	/* kfd_chardev.c: kfd_ioctl_alloc_memory_of_gpu() (Linux 7.3) */
	if (process->is_context && io->flags & KFD_MEM_USERPTR)
		return -EOPNOTSUPP;
	if (!nowhere && sim_svm_overlaps(process, io->va_addr, io->size))
		return -EADDRINUSE;
	if (type_of(io->flags) == KFD_MEM_USERPTR &&
	    sim_svm_overlaps(process, io->mmap_offset, io->size))
		return -EADDRINUSE;
	return pdd ? 0 : -EINVAL;
}

static int check_user_pages(const struct sim_mem_wanted *wanted)
{
	u64 first = wanted->user_addr & ~(SIM_PAGE_SIZE - 1);
	u64 end = (wanted->user_addr + wanted->size + SIM_PAGE_SIZE - 1) & ~(SIM_PAGE_SIZE - 1);

	if (type_of(wanted->flags) != KFD_MEM_USERPTR || !wanted->user_addr)
		return 0;
	return sim_os_mm_check(first, end - first) < 0 ? -EFAULT : 0;
}

SIM_KFD_HANDLER(sim_kfd_alloc_memory)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *io = args;
	struct sim_pdd *pdd = sim_process_pdd(process, io->gpu_id);
	struct sim_mem_wanted wanted = {
		.va = io->va_addr,
		.size = io->size,
		.user_addr = io->mmap_offset & ~TAG_BITS,
		.flags = io->flags,
	};
	struct sim_mem *mem;
	int ret;

	ret = check_alloc(process, io, pdd);
	if (ret == 0)
		ret = check_user_pages(&wanted);
	if (ret == 0)
		ret = sim_mem_new(pdd, &wanted, &mem);
	if (ret < 0)
		return ret;
	io->handle = sim_mem_handle(mem);
	if (type_of(io->flags) == KFD_MEM_MMIO_REMAP)
		io->mmap_offset = KFD_MMAP_TYPE(KFD_MMAP_MMIO) | KFD_MMAP_GPU_ID(pdd->user_gpu_id);
	else
		io->mmap_offset = sim_os_bo_mmap_offset(mem->bo);
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_free_memory)
{
	struct kfd_ioctl_free_memory_of_gpu_args *in = args;
	struct sim_mem *mem = sim_mem_find(process, in->handle);

	if (!mem)
		return -EINVAL;
	if (mem == process->event_mem)
		return -EPERM;
	if (mem->mapped)
		return -EBUSY;
	sim_mem_free(mem);
	return 0;
}

/* The common checks of MAP and UNMAP. Returns the buffer. */
static int check_map(struct sim_process *process, const struct kfd_ioctl_map_memory_to_gpu_args *io,
		     struct sim_mem **ret_mem)
{
	struct sim_pdd *pdd;
	struct sim_mem *mem;
	int ret;

	if (!io->n_devices || io->n_success > io->n_devices || io->n_devices > SIM_MAX_GPUS)
		return -EINVAL;
	ret = sim_process_pdd_with_vm(process, (u32)(io->handle >> 32), &pdd);
	if (ret < 0)
		return ret;
	mem = sim_ids_get(&pdd->mems, (u32)io->handle);
	if (!mem)
		sim_mem_note_missing(process, "MAP or UNMAP");
	if (!mem)
		return -ENOMEM;
	*ret_mem = mem;
	return 0;
}

static int next_device(struct sim_process *process,
		       const struct kfd_ioctl_map_memory_to_gpu_args *io, struct sim_pdd **ret_pdd)
{
	u32 id;

	if (sim_os_copy_from_user(&id, io->device_ids_array_ptr + 4ull * io->n_success,
				  sizeof(id)) < 0)
		return -EFAULT;
	return sim_process_pdd_with_vm(process, id, ret_pdd);
}

SIM_KFD_HANDLER(sim_kfd_map_memory)
{
	struct kfd_ioctl_map_memory_to_gpu_args *io = args;
	struct sim_mem *mem;
	struct sim_pdd *pdd;
	int ret;

	ret = check_map(process, io, &mem);
	if (ret == 0 && !mem->va)
		ret = -EINVAL;
	while (ret == 0 && io->n_success < io->n_devices) {
		ret = next_device(process, io, &pdd);
		if (ret == 0)
			ret = sim_mem_map(mem, pdd);
		if (ret == 0)
			io->n_success++;
	}
	return ret;
}

SIM_KFD_HANDLER(sim_kfd_unmap_memory)
{
	struct kfd_ioctl_map_memory_to_gpu_args *io = args;
	struct sim_mem *mem;
	struct sim_pdd *pdd;
	int ret;

	ret = check_map(process, io, &mem);
	while (ret == 0 && io->n_success < io->n_devices) {
		ret = next_device(process, io, &pdd);
		if (ret == 0 && !(mem->mapped & 1ull << pdd->index))
			ret = -EINVAL;
		if (ret < 0)
			break;
		mem_unmap(mem, pdd);
		io->n_success++;
	}
	return ret;
}
