// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers that KFD hands out, their mappings on GPUs and their dma-bufs. What RESTORE makes comes
 * through sim_mem_new() as well; contents are bo.c's. */
#include "process.h"

#define TYPES    (KFD_MEM_VRAM | KFD_MEM_GTT | KFD_MEM_USERPTR | KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP)
#define TAG_BITS (0x7full << 57)

static bool has_content(u32 flags)
{
	return flags & (KFD_MEM_VRAM | KFD_MEM_GTT);
}

static u64 handle_of(const struct sim_mem *mem)
{
	return (u64)mem->pdd->user_gpu_id << 32 | mem->id;
}

struct sim_mem *sim_mem_find(struct sim_process *process, u64 handle)
{
	struct sim_pdd *pdd = sim_process_pdd(process, (u32)(handle >> 32));

	return pdd ? sim_ids_get(&pdd->mems, (u32)handle) : NULL;
}

/* The first type flag counts, in the order of their bits. */
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

static int fill_bo(struct sim_bo *bo, const struct sim_mem_wanted *wanted)
{
	u32 type = type_of(wanted->flags);
	struct sim_bo_memory memory = {
		.domains = type == KFD_MEM_VRAM ? DRM_DOMAIN_VRAM : DRM_DOMAIN_GTT,
		.flags = DRM_BO_VRAM_CLEARED,
		.limited = true,
		.poisoned = wanted->poisoned,
	};

	bo->kfd = true;
	if (has_content(type))
		return sim_bo_set_memory(bo, &memory);
	if (type == KFD_MEM_USERPTR)
		return sim_bo_set_user(bo, wanted->user_addr, false, true);
	return 0;
}

/* The part that can be undone by putting the buffer and freeing @mem. */
static int mem_fill(struct sim_mem *mem, const struct sim_mem_wanted *wanted)
{
	struct sim_pdd *pdd = mem->pdd;
	u64 size = (wanted->size + SIM_PAGE_SIZE - 1) & ~(SIM_PAGE_SIZE - 1);
	int ret;

	mem->bo = sim_os_bo_new(pdd->gpu, size);
	if (!mem->bo)
		return -ENOMEM;
	ret = fill_bo(mem->bo, wanted);
	if (ret < 0)
		return ret;
	if (wanted->fixed_id)
		ret = sim_ids_add_at(&pdd->mems, mem, wanted->id) < 0 ? -ENOMEM : 0;
	else
		ret = sim_ids_add(&pdd->mems, mem, 0x7fffffff, &mem->id) < 0 ? -EFAULT : 0;
	if (ret < 0)
		return ret;
	ret = sim_os_bo_allow(mem->bo, pdd->render);
	if (ret < 0)
		(void)sim_ids_remove(&pdd->mems, mem->id);
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
	mem = sim_os_alloc(sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->pdd = pdd;
	mem->id = wanted->id;
	mem->va = wanted->va;
	mem->flags = wanted->flags;
	mem->user_addr = type_of(wanted->flags) == KFD_MEM_USERPTR ? wanted->user_addr : 0;
	ret = mem_fill(mem, wanted);
	if (ret < 0) {
		if (mem->bo)
			sim_os_bo_put(mem->bo);
		sim_os_free(mem);
		return ret;
	}
	sim_count(pdd->gpu->sim, SIM_COUNT_KFD_BOS, 1);
	*ret_mem = mem;
	return 0;
}

static void mem_unmap(struct sim_mem *mem, struct sim_pdd *pdd)
{
	(void)sim_vm_unmap(&pdd->render->vm, mem->bo, mem->va, SIM_VM_KFD);
	mem->mapped &= ~(1ull << pdd->index);
}

void sim_mem_free(struct sim_mem *mem)
{
	struct sim_process *process = mem->pdd->process;
	u32 i;

	for (i = 0; i < process->num_pdds; i++)
		if (mem->mapped & 1ull << i)
			mem_unmap(mem, process->pdds[i]);
	(void)sim_ids_remove(&mem->pdd->mems, mem->id);
	sim_os_bo_disallow(mem->bo, mem->pdd->render);
	if (mem->dmabuf)
		sim_os_dmabuf_put(mem->dmabuf);
	sim_os_bo_put(mem->bo);
	sim_count(process->sim, SIM_COUNT_KFD_BOS, -1);
	sim_os_free(mem);
}

int sim_mem_map(struct sim_mem *mem, struct sim_pdd *pdd)
{
	struct sim_mapping mapping = {
		.start = mem->va,
		.end = mem->va + mem->bo->size,
		.bo = mem->bo,
		.flags = DRM_VM_READ,
		.origin = SIM_VM_KFD,
	};
	int ret;

	if (mem->mapped & 1ull << pdd->index)
		return 0;
	if (mem->flags & KFD_MEM_WRITABLE)
		mapping.flags |= DRM_VM_WRITE;
	if (mem->flags & KFD_MEM_EXECUTABLE)
		mapping.flags |= DRM_VM_EXEC;
	ret = sim_vm_map(&pdd->render->vm, &mapping);
	if (ret == 0)
		mem->mapped |= 1ull << pdd->index;
	return ret;
}

static int check_alloc(struct sim_process *process, const struct kfd_alloc_memory_args *io,
		       struct sim_pdd *pdd)
{
	bool nowhere = io->va_addr == 0 && type_of(io->flags) == KFD_MEM_VRAM;

	if (!io->size)
		return -EINVAL;
	if (!nowhere && sim_svm_overlaps(process, io->va_addr, io->size))
		return -EADDRINUSE;
	if (type_of(io->flags) == KFD_MEM_USERPTR &&
	    sim_svm_overlaps(process, io->mmap_offset, io->size))
		return -EADDRINUSE;
	return pdd ? 0 : -EINVAL;
}

static int check_user_pages(struct sim_process *process, const struct sim_mem_wanted *wanted)
{
	u64 first = wanted->user_addr & ~(SIM_PAGE_SIZE - 1);
	u64 end = (wanted->user_addr + wanted->size + SIM_PAGE_SIZE - 1) & ~(SIM_PAGE_SIZE - 1);
	bool write = (wanted->flags & KFD_MEM_WRITABLE) != 0;

	if (type_of(wanted->flags) != KFD_MEM_USERPTR || !wanted->user_addr)
		return 0;
	return sim_os_mm_check(sim_os_process_mm(process), first, end - first, write) < 0 ? -EFAULT
											  : 0;
}

SIM_KFD_HANDLER(sim_kfd_alloc_memory)
{
	struct kfd_alloc_memory_args *io = args;
	struct sim_pdd *pdd = sim_process_pdd(process, io->gpu_id);
	struct sim_mem_wanted wanted = {
		.va = io->va_addr,
		.size = io->size,
		.user_addr = io->mmap_offset & ~TAG_BITS,
		.flags = io->flags,
	};
	struct sim_mem *mem;
	int ret;

	(void)size;
	ret = check_alloc(process, io, pdd);
	if (ret == 0)
		ret = check_user_pages(process, &wanted);
	if (ret == 0)
		ret = sim_mem_new(pdd, &wanted, &mem);
	if (ret < 0)
		return ret;
	io->handle = handle_of(mem);
	if (type_of(io->flags) == KFD_MEM_MMIO_REMAP)
		io->mmap_offset = KFD_MMAP_TYPE(KFD_MMAP_MMIO) | KFD_MMAP_GPU_ID(pdd->user_gpu_id);
	else
		io->mmap_offset = sim_os_bo_mmap_offset(mem->bo);
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_free_memory)
{
	struct kfd_free_memory_args *in = args;
	struct sim_mem *mem = sim_mem_find(process, in->handle);

	(void)size;
	if (!mem)
		return -EINVAL;
	if (mem == process->event_mem)
		return -EPERM;
	if (mem->mapped)
		return -EBUSY;
	sim_mem_free(mem);
	return 0;
}

/* What MAP and UNMAP check alike; the buffer is the result. */
static int check_map(struct sim_process *process, const struct kfd_map_memory_args *io,
		     struct sim_mem **ret_mem)
{
	struct sim_pdd *pdd = sim_process_pdd(process, (u32)(io->handle >> 32));
	struct sim_mem *mem;

	if (!io->n_devices || io->n_success > io->n_devices || io->n_devices > SIM_MAX_GPUS)
		return -EINVAL;
	if (!pdd)
		return -EINVAL;
	if (!pdd->render)
		return -ENODEV;
	mem = sim_ids_get(&pdd->mems, (u32)io->handle);
	if (!mem)
		return -ENOMEM;
	*ret_mem = mem;
	return 0;
}

static int next_device(struct sim_process *process, const struct kfd_map_memory_args *io,
		       struct sim_pdd **ret_pdd)
{
	struct sim_pdd *pdd;
	u32 id;

	if (sim_os_copy_from_user(&id, io->device_ids_ptr + 4ull * io->n_success, sizeof(id)) < 0)
		return -EFAULT;
	pdd = sim_process_pdd(process, id);
	if (!pdd)
		return -EINVAL;
	if (!pdd->render)
		return -ENODEV;
	*ret_pdd = pdd;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_map_memory)
{
	struct kfd_map_memory_args *io = args;
	struct sim_mem *mem;
	struct sim_pdd *pdd;
	int ret;

	(void)size;
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
	struct kfd_map_memory_args *io = args;
	struct sim_mem *mem;
	struct sim_pdd *pdd;
	int ret;

	(void)size;
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

int sim_mem_dmabuf(struct sim_mem *mem, struct sim_dmabuf **ret_dmabuf)
{
	int ret = 0;

	if (!mem->dmabuf)
		ret = sim_os_dmabuf_export(mem->bo, (mem->flags & KFD_MEM_WRITABLE) != 0,
					   &mem->dmabuf);
	if (ret == 0)
		*ret_dmabuf = mem->dmabuf;
	return ret;
}

static int answer_metadata(struct sim_bo *bo, struct kfd_get_dmabuf_info_args *io)
{
	u8 metadata[SIM_BO_METADATA_BYTES];
	u32 bytes;

	sim_lock(&bo->lock);
	bytes = bo->metadata_bytes;
	memcpy(metadata, bo->metadata, bytes);
	sim_unlock(&bo->lock);
	if (io->metadata_ptr && io->metadata_size < bytes)
		return -EINVAL;
	if (io->metadata_ptr && sim_os_copy_to_user(io->metadata_ptr, metadata, bytes) < 0)
		return -EFAULT;
	io->metadata_size = bytes;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_get_dmabuf_info)
{
	struct kfd_get_dmabuf_info_args *io = args;
	struct sim_dmabuf *dmabuf;
	struct sim_bo *bo;
	int ret;

	(void)process, (void)size;
	if (sim_os_dmabuf_from_fd((int)io->dmabuf_fd, &dmabuf) < 0)
		return -EINVAL;
	bo = sim_os_dmabuf_bo(dmabuf);
	ret = bo ? answer_metadata(bo, io) : -EINVAL;
	if (ret == 0) {
		io->size = bo->size;
		io->gpu_id = bo->gpu->gpu_id;
		io->flags =
			bo->domains & DRM_DOMAIN_VRAM ? KFD_MEM_VRAM | KFD_MEM_PUBLIC : KFD_MEM_GTT;
	}
	sim_os_dmabuf_put(dmabuf);
	return ret;
}

static int import(struct sim_pdd *pdd, struct sim_dmabuf *dmabuf, u64 va, struct sim_mem **ret_mem)
{
	struct sim_mem *mem;
	int ret;

	mem = sim_os_alloc(sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->pdd = pdd;
	mem->va = va;
	ret = sim_os_dmabuf_import(dmabuf, pdd->gpu, &mem->bo);
	if (ret < 0) {
		sim_os_free(mem);
		return ret;
	}
	mem->flags = KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE;
	mem->flags |= mem->bo->domains & DRM_DOMAIN_VRAM ? KFD_MEM_VRAM : KFD_MEM_GTT;
	ret = sim_ids_add(&pdd->mems, mem, 0x7fffffff, &mem->id) < 0 ? -EFAULT : 0;
	if (ret == 0)
		ret = sim_os_bo_allow(mem->bo, pdd->render);
	if (ret < 0) {
		(void)sim_ids_remove(&pdd->mems, mem->id);
		sim_os_bo_put(mem->bo);
		sim_os_free(mem);
		return ret;
	}
	sim_os_dmabuf_get(dmabuf);
	mem->dmabuf = dmabuf;
	sim_count(pdd->gpu->sim, SIM_COUNT_KFD_BOS, 1);
	*ret_mem = mem;
	return 0;
}

static int check_import(const struct sim_pdd *pdd, struct sim_dmabuf *dmabuf)
{
	const struct sim_bo *bo = sim_os_dmabuf_bo(dmabuf);

	if (SIM_KNOB(pdd->gpu->sim, foreign_imports))
		return 0;
	return bo && bo->gpu->device == pdd->gpu->device ? 0 : -EINVAL;
}

SIM_KFD_HANDLER(sim_kfd_import_dmabuf)
{
	struct kfd_import_dmabuf_args *io = args;
	struct sim_pdd *pdd = sim_process_pdd(process, io->gpu_id);
	struct sim_dmabuf *dmabuf;
	struct sim_mem *mem;
	int ret;

	(void)size;
	if (!pdd)
		return -EINVAL;
	if (!pdd->render)
		return -ENODEV;
	ret = sim_os_dmabuf_from_fd((int)io->dmabuf_fd, &dmabuf);
	if (ret < 0)
		return ret;
	ret = check_import(pdd, dmabuf);
	if (ret == 0)
		ret = import(pdd, dmabuf, io->va_addr, &mem);
	sim_os_dmabuf_put(dmabuf);
	if (ret == 0)
		io->handle = handle_of(mem);
	return ret;
}

SIM_KFD_HANDLER(sim_kfd_export_dmabuf)
{
	struct kfd_export_dmabuf_args *io = args;
	/* the real id, not the user's: so it is in the kernel */
	struct sim_pdd *pdd = sim_process_pdd_by_real_id(process, (u32)(io->handle >> 32));
	struct sim_mem *mem = pdd ? sim_ids_get(&pdd->mems, (u32)io->handle) : NULL;
	struct sim_dmabuf *dmabuf = NULL;
	int ret, fd;

	(void)size;
	if (!mem || !has_content(mem->flags))
		return -EINVAL;
	ret = sim_mem_dmabuf(mem, &dmabuf);
	if (ret < 0)
		return ret;
	fd = sim_os_fd_reserve((io->flags & 02000000) != 0); /* O_CLOEXEC */
	if (fd < 0)
		return fd;
	sim_os_fd_install(fd, dmabuf);
	io->dmabuf_fd = (u32)fd;
	return 0;
}
