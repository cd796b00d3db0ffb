// SPDX-License-Identifier: GPL-2.0-only
/* How processes share buffers of KFD: exported and imported dma-bufs, and the GEM handles behind
 * them. From Linux 6.8 on, KFD opens a file of its own on each device (amdgpu_amdkfd.c:
 * amdgpu_amdkfd_drm_client_create(), DRM client "kfd"), and this file has a GEM handle of each
 * buffer of every process. The knob kfd_client is 0 for kernels without it. */
#include "process.h"

static bool has_client(const struct sim_mem *mem)
{
	return SIM_KNOB(mem->pdd->gpu->sim, kfd_client) != 0;
}

static struct sim_render *client_of(const struct sim_mem *mem)
{
	return sim_os_kfd_client(mem->pdd->gpu);
}

/* amdgpu_amdkfd_gpuvm.c (6.12): amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu() makes the handle */
int sim_mem_name(struct sim_mem *mem)
{
	if (!has_client(mem))
		return 0;
	return sim_os_handle_create(client_of(mem), mem->bo, &mem->gem_handle);
}

/* amdgpu_amdkfd_gpuvm.c (6.12, 7.2, 7.3): amdgpu_amdkfd_gpuvm_free_memory_of_gpu() deletes the
 * handle without checking its owner. An import that found the exporter's handle deletes that
 * handle. When the exporter deletes it, the number may belong to another buffer. */
void sim_mem_unname(struct sim_mem *mem)
{
	if (mem->gem_handle)
		sim_os_handle_delete(client_of(mem), mem->gem_handle);
	mem->gem_handle = 0;
}

void sim_mem_keep_dmabuf(struct sim_mem *mem, struct sim_dmabuf *dmabuf)
{
	mem->dmabuf = dmabuf;
	if (dmabuf)
		sim_os_dmabuf_count_mem(dmabuf, 1);
}

void sim_mem_drop_dmabuf(struct sim_mem *mem)
{
	if (!mem->dmabuf)
		return;
	sim_os_dmabuf_count_mem(mem->dmabuf, -1);
	sim_os_dmabuf_put(mem->dmabuf);
	mem->dmabuf = NULL;
}

/* amdgpu_amdkfd_gpuvm.c (6.12): kfd_mem_export_dmabuf(). The buffer keeps its dma-buf for life.
 * Without KFD's client, the process's entry has one of its own (kfd_mem_attach_dmabuf() in 6.1),
 * and the object does not know it: amdgpu_dma_buf.c, amdgpu_gem_prime_export(), makes a new one. */
int sim_mem_dmabuf(struct sim_mem *mem, struct sim_dmabuf **ret_dmabuf)
{
	bool writable = (mem->flags & KFD_MEM_WRITABLE) != 0;
	struct sim_dmabuf *dmabuf;
	int ret = 0;

	if (!mem->dmabuf && has_client(mem))
		ret = sim_os_prime_export(client_of(mem), mem->gem_handle, writable, &dmabuf);
	else if (!mem->dmabuf)
		ret = sim_os_dmabuf_new(mem->bo, writable, &dmabuf);
	if (ret < 0)
		return ret;
	if (!mem->dmabuf)
		sim_mem_keep_dmabuf(mem, dmabuf);
	sim_os_dmabuf_get(mem->dmabuf);
	*ret_dmabuf = mem->dmabuf;
	return 0;
}

/* kfd_chardev.c: criu_get_prime_handle() exports the object in 6.1, so each call makes a dma-buf.
 * From 6.8 on it takes the buffer's own (6.12). */
int sim_mem_criu_dmabuf(struct sim_mem *mem, struct sim_dmabuf **ret_dmabuf)
{
	bool writable = (mem->flags & KFD_MEM_WRITABLE) != 0;

	return has_client(mem) ? sim_mem_dmabuf(mem, ret_dmabuf)
			       : sim_os_dmabuf_new(mem->bo, writable, ret_dmabuf);
}

/* The first one that the caller may see; NULL: none. */
static struct sim_gpu *first_visible(struct sim *sim)
{
	u32 i;

	for (i = 0; i < sim->num_gpus; i++)
		if (!sim->gpus[i].hidden)
			return &sim->gpus[i];
	return NULL;
}

/* kfd_chardev.c: kfd_ioctl_get_dmabuf_info(), amdgpu_amdkfd.c: amdgpu_amdkfd_get_dmabuf_info()
 * (6.12). Of a GPU that can have partitions, host memory of KFD belongs to none of them. */
static void answer_dmabuf_info(const struct sim_bo *bo, const struct sim_gpu *first,
			       struct kfd_ioctl_get_dmabuf_info_args *io)
{
	bool vram = (bo->domains & AMDGPU_GEM_DOMAIN_VRAM) != 0;

	io->size = bo->size;
	io->gpu_id = bo->kfd_flags && !vram && sim_gpu_has_partitions(bo->gpu) ? first->gpu_id
									       : bo->gpu->gpu_id;
	io->flags = vram ? KFD_MEM_VRAM : KFD_MEM_GTT;
	if (bo->flags & AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED)
		io->flags |= KFD_MEM_PUBLIC;
}

/* Metadata without room are an error, also for a caller that does not want them. */
static int answer_metadata(struct sim_bo *bo, struct kfd_ioctl_get_dmabuf_info_args *io)
{
	u32 room = io->metadata_size, data[64] = { 0 };
	int ret = 0;

	sim_lock(&bo->lock);
	io->metadata_size = bo->metadata ? bo->metadata->bytes : 0;
	if (bo->metadata)
		memcpy(data, bo->metadata->data, sizeof(data));
	sim_unlock(&bo->lock);
	if (io->metadata_size > room)
		return -EINVAL;
	if (io->metadata_size && io->metadata_ptr)
		ret = sim_os_copy_to_user(io->metadata_ptr, data, io->metadata_size);
	return ret < 0 ? -EFAULT : 0;
}

SIM_KFD_HANDLER(sim_kfd_get_dmabuf_info)
{
	struct sim_gpu *first = first_visible(process->sim);
	struct kfd_ioctl_get_dmabuf_info_args *io = args;
	struct sim_dmabuf *dmabuf;
	struct sim_bo *bo;
	int ret;

	if (!first)
		return -EINVAL;
	ret = sim_os_dmabuf_from_fd((int)io->dmabuf_fd, &dmabuf);
	if (ret < 0)
		return ret;
	bo = sim_os_dmabuf_bo(dmabuf);
	ret = bo ? answer_metadata(bo, io) : -EINVAL;
	if (!ret)
		answer_dmabuf_info(bo, first, io);
	sim_os_dmabuf_put(dmabuf);
	return ret;
}

/* amdgpu_amdkfd_gpuvm.c (6.12): amdgpu_amdkfd_gpuvm_import_dmabuf_fd(). PRIME finds a dma-buf that
 * KFD has exported under the exporter's handle, and does not count a reference. */
static int import_by_client(struct sim_mem *mem, int fd)
{
	struct sim_render *client = client_of(mem);
	int ret;

	ret = sim_os_prime_import(client, fd, &mem->gem_handle);
	if (ret < 0)
		return ret;
	mem->bo = sim_os_handle_lookup(client, mem->gem_handle);
	if (!mem->bo || sim_bo_is_refused_in_hive(mem->bo))
		return -EINVAL;
	sim_mem_keep_dmabuf(mem, sim_os_bo_dmabuf(mem->bo));
	return 0;
}

/* amdgpu_amdkfd_gpuvm.c (6.1): amdgpu_amdkfd_gpuvm_import_dmabuf() accepts only buffers of its own
 * device, and keeps the buffer, not the dma-buf. */
static int import_by_itself(struct sim_mem *mem, int fd)
{
	struct sim_dmabuf *dmabuf;
	struct sim_bo *bo;
	int ret;

	ret = sim_os_dmabuf_from_fd(fd, &dmabuf);
	if (ret < 0)
		return ret;
	bo = sim_os_dmabuf_bo(dmabuf);
	if (bo && sim_gpu_same_device(bo->gpu, mem->pdd->gpu)) {
		sim_os_bo_get(bo);
		mem->bo = bo;
	}
	sim_os_dmabuf_put(dmabuf);
	return mem->bo ? 0 : -EINVAL;
}

/* amdgpu_amdkfd_gpuvm.c: import_obj_create() (6.12), the same in 6.1. The out-of-tree driver gives
 * an import the flags of the process that made the buffer, if KFD has made it on this PCI device.
 */
int sim_mem_enter_import(struct sim_mem *mem, const u32 *id)
{
	if (!(mem->bo->domains & (AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT)))
		return -EINVAL;
	mem->flags = mem->bo->domains & AMDGPU_GEM_DOMAIN_VRAM ? KFD_MEM_VRAM : KFD_MEM_GTT;
	mem->flags |= KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE;
	if (SIM_KNOB(mem->pdd->gpu->sim, maker_flags) && mem->bo->kfd_flags)
		mem->flags = mem->bo->kfd_flags;
	mem->imported = true;
	return sim_mem_enter(mem, id);
}

static int import_fill(struct sim_mem *mem, int fd)
{
	int ret;

	ret = has_client(mem) ? import_by_client(mem, fd) : import_by_itself(mem, fd);
	return ret < 0 ? ret : sim_mem_enter_import(mem, NULL);
}

static int import(struct sim_pdd *pdd, int fd, u64 va, struct sim_mem **ret_mem)
{
	struct sim_mem *mem;
	int ret;

	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->pdd = pdd;
	mem->va = va;
	ret = import_fill(mem, fd);
	if (ret == 0) {
		*ret_mem = mem;
		return 0;
	}
	sim_mem_unname(mem);
	sim_mem_drop_dmabuf(mem);
	if (mem->bo)
		sim_os_bo_put(mem->bo);
	free(mem);
	return ret;
}

SIM_KFD_HANDLER(sim_kfd_import_dmabuf)
{
	struct kfd_ioctl_import_dmabuf_args *io = args;
	struct sim_pdd *pdd;
	struct sim_mem *mem;
	int ret;

	ret = sim_process_pdd_with_vm(process, io->gpu_id, &pdd);
	if (ret == 0)
		ret = import(pdd, (int)io->dmabuf_fd, io->va_addr, &mem);
	if (ret == 0)
		io->handle = sim_mem_handle(mem);
	return ret;
}

/* The driver looks up the handle's upper half among the real ids, not among the ids of the process
 * (kfd_chardev.c: kfd_ioctl_export_dmabuf(), 6.12, 7.2, 7.3). amdgpu_gem_prime_export() returns
 * EPERM for user memory. */
static int find_export(struct sim_process *process, u64 handle, struct sim_mem **ret_mem)
{
	struct sim_pdd *pdd = sim_process_pdd_by_real_id(process, (u32)(handle >> 32));
	struct sim_mem *mem = pdd ? sim_ids_get(&pdd->mems, (u32)handle) : NULL;

	if (pdd && !mem)
		sim_mem_note_missing(process, "EXPORT_DMABUF");
	if (!mem)
		return -EINVAL;
	if (mem->bo->kind == SIM_BO_USERPTR)
		return -EPERM;
	if (mem->bo->kind == SIM_BO_IO) {
		sim_violation(process->sim, "EXPORT_DMABUF of doorbells or registers");
		return -EINVAL;
	}
	*ret_mem = mem;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_export_dmabuf)
{
	struct kfd_export_dmabuf_args *io = args;
	struct sim_dmabuf *dmabuf;
	struct sim_mem *mem;
	int ret, fd;

	ret = find_export(process, io->handle, &mem);
	if (ret == 0)
		ret = sim_mem_dmabuf(mem, &dmabuf);
	if (ret < 0)
		return ret;
	fd = sim_os_fd_reserve((io->flags & 02000000) != 0); /* O_CLOEXEC */
	if (fd >= 0) {
		sim_os_fd_install(fd, dmabuf);
		io->dmabuf_fd = (u32)fd;
	}
	sim_os_dmabuf_put(dmabuf);
	return min(fd, 0);
}
