// SPDX-License-Identifier: GPL-2.0-only
/* Share handles of AMD's out-of-tree driver: 128 random bits that name a buffer for all processes
 * of the host. amdkfd/kfd_ipc.c of the releases 6.7.0 and 6.12.12 has the ioctls, and
 * amdkfd/kfd_chardev.c (criu_checkpoint_bos(), criu_restore_memory_of_gpu_ipc()) the CRIU
 * operations. Mainline has no such handles: the knob ipc_handles is 0. */
#include "process.h"

/* A name and its dma-buf, which it holds. It lives as long as a buffer of KFD has it. */
struct sim_ipc {
	struct sim_ipc *next;
	struct sim_share share;
	struct sim_dmabuf *dmabuf;
	u32 references;
};

static void make_handle(u32 *handle)
{
	static u64 counter;
	u64 word = sim_os_now_ns() ^ __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED) << 48;
	u32 i;

	for (i = 0; i < SIM_SHARE_WORDS; i++) {
		word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull + 0x9e3779b97f4a7c15ull;
		handle[i] = (u32)(word >> 32) | 1;
	}
}

/* Under sim->ipc_lock, as the next two. */
static struct sim_ipc *find(struct sim *sim, const u32 *handle)
{
	struct sim_ipc *ipc = sim->ipcs;

	while (ipc && memcmp(ipc->share.handle, handle, sizeof(ipc->share.handle)) != 0)
		ipc = ipc->next;
	return ipc;
}

/* Takes over the reference to @dmabuf on success. */
static int enter(struct sim *sim, const struct sim_share *share, struct sim_dmabuf *dmabuf,
		 struct sim_ipc **ret_ipc)
{
	struct sim_ipc *ipc = calloc(1, sizeof(*ipc));

	if (!ipc)
		return -ENOMEM;
	ipc->share = *share;
	ipc->dmabuf = dmabuf;
	ipc->references = 1;
	ipc->next = sim->ipcs;
	sim->ipcs = ipc;
	*ret_ipc = ipc;
	return 0;
}

/* A new name: the caller has made the buffer. -EINVAL: another buffer has this name. */
static int name_bo(struct sim *sim, const struct sim_share *share, struct sim_dmabuf *dmabuf,
		   struct sim_ipc **ret_ipc)
{
	int ret = -EINVAL;

	sim_lock(&sim->ipc_lock);
	if (!find(sim, share->handle))
		ret = sim_os_share_enter(dmabuf, share);
	if (ret == 0)
		ret = enter(sim, share, dmabuf, ret_ipc);
	sim_unlock(&sim->ipc_lock);
	return ret;
}

/* -EINVAL: no buffer has this name. */
static int get(struct sim *sim, const u32 *handle, struct sim_ipc **ret_ipc)
{
	struct sim_share share;
	struct sim_dmabuf *dmabuf;
	int ret = 0;

	sim_lock(&sim->ipc_lock);
	*ret_ipc = find(sim, handle);
	if (*ret_ipc) {
		(*ret_ipc)->references++;
	} else {
		ret = sim_os_share_find(handle, &share, &dmabuf);
		if (ret == 0) {
			ret = enter(sim, &share, dmabuf, ret_ipc);
			if (ret < 0)
				sim_os_dmabuf_put(dmabuf);
		}
	}
	sim_unlock(&sim->ipc_lock);
	return ret;
}

void sim_ipc_put(struct sim *sim, struct sim_ipc *ipc)
{
	struct sim_ipc **at = &sim->ipcs;

	sim_lock(&sim->ipc_lock);
	if (--ipc->references) {
		sim_unlock(&sim->ipc_lock);
		return;
	}
	while (*at != ipc)
		at = &(*at)->next;
	*at = ipc->next;
	sim_os_share_leave(ipc->share.handle);
	sim_unlock(&sim->ipc_lock);
	sim_os_dmabuf_put(ipc->dmabuf);
	free(ipc);
}

bool sim_ipc_holds(struct sim *sim, const struct sim_dmabuf *dmabuf)
{
	struct sim_ipc *ipc;

	sim_lock(&sim->ipc_lock);
	for (ipc = sim->ipcs; ipc && ipc->dmabuf != dmabuf;)
		ipc = ipc->next;
	sim_unlock(&sim->ipc_lock);
	return ipc != NULL;
}

/* On another device an import is an object of its own, as that of IMPORT_DMABUF: both call
 * amdgpu_amdkfd_gpuvm_import_dmabuf(). */
static int fill(struct sim_mem *mem, const struct sim_ipc *ipc, const u32 *id)
{
	int ret;

	if (id && sim_ids_get(&mem->pdd->mems, *id))
		return -EFAULT;
	ret = sim_os_dmabuf_import(ipc->dmabuf, mem->pdd->gpu, &mem->bo);
	if (ret < 0)
		return ret;
	ret = sim_mem_enter_import(mem, id);
	if (ret < 0)
		sim_os_bo_put(mem->bo);
	return ret;
}

/* Takes over the reference to @ipc on success. */
static int import(struct sim_pdd *pdd, struct sim_ipc *ipc, u64 va, const u32 *id,
		  struct sim_mem **ret_mem)
{
	struct sim_mem *mem = calloc(1, sizeof(*mem));
	int ret;

	if (!mem)
		return -ENOMEM;
	mem->pdd = pdd;
	mem->va = va;
	ret = fill(mem, ipc, id);
	if (ret < 0) {
		free(mem);
		return ret;
	}
	sim_os_dmabuf_get(ipc->dmabuf);
	sim_mem_keep_dmabuf(mem, ipc->dmabuf);
	mem->ipc = ipc;
	*ret_mem = mem;
	return 0;
}

static int import_by_handle(struct sim_pdd *pdd, const u32 *handle, u64 va, const u32 *id,
			    struct sim_mem **ret_mem)
{
	struct sim *sim = pdd->gpu->sim;
	struct sim_ipc *ipc;
	int ret = get(sim, handle, &ipc);

	if (ret < 0)
		return ret;
	/* kfd_bind_process_to_device(), after the name is found */
	ret = pdd->render ? import(pdd, ipc, va, id, ret_mem) : -ENODEV;
	if (ret < 0)
		sim_ipc_put(sim, ipc);
	return ret;
}

static int name_mem(struct sim_mem *mem, const struct sim_share *share)
{
	struct sim_dmabuf *dmabuf;
	int ret = sim_mem_dmabuf(mem, &dmabuf);

	if (ret < 0)
		return ret;
	ret = name_bo(mem->pdd->gpu->sim, share, dmabuf, &mem->ipc);
	if (ret < 0)
		sim_os_dmabuf_put(dmabuf);
	return ret;
}

SIM_KFD_HANDLER(sim_kfd_ipc_export)
{
	struct kfd_ipc_export_args *io = args;
	struct sim_share share = { .flags = io->flags };
	struct sim_pdd *pdd;
	struct sim_mem *mem;
	int ret;

	ret = sim_process_pdd_with_vm(process, io->gpu_id, &pdd);
	if (ret < 0)
		return ret;
	mem = sim_ids_get(&pdd->mems, (u32)io->handle);
	if (!mem || mem->bo->kind != SIM_BO_MEMORY)
		return mem && mem->bo->kind == SIM_BO_USERPTR ? -EPERM : -EINVAL;
	if (!mem->ipc) {
		make_handle(share.handle);
		ret = name_mem(mem, &share);
	}
	if (ret == 0)
		memcpy(io->share_handle, mem->ipc->share.handle, sizeof(io->share_handle));
	return ret;
}

SIM_KFD_HANDLER(sim_kfd_ipc_import)
{
	struct kfd_ipc_import_args *io = args;
	struct sim_pdd *pdd = sim_process_pdd(process, io->gpu_id);
	struct sim_mem *mem;
	int ret = -EINVAL;

	if (pdd)
		ret = import_by_handle(pdd, io->share_handle, io->va_addr, NULL, &mem);
	if (ret < 0)
		return ret;
	io->handle = sim_mem_handle(mem);
	io->mmap_offset = sim_os_bo_mmap_offset(mem->bo);
	io->flags = mem->ipc->share.flags;
	return 0;
}

void sim_ipc_write_record(const struct sim_mem *mem, struct sim_priv_ipc *record)
{
	memset(record, 0, sizeof(*record));
	if (!mem->ipc)
		return;
	record->is_imported = mem->imported;
	record->flags = mem->ipc->share.flags;
	memcpy(record->share_handle, mem->ipc->share.handle, sizeof(record->share_handle));
}

/* criu_restore_memory_of_gpu_ipc(): the first process makes the buffer and names it, and the others
 * import it. Of two that make it at once, the second frees its own. The driver ignores other errors
 * of naming. */
int sim_ipc_restore(struct sim_pdd *pdd, const struct sim_mem_wanted *wanted,
		    const struct sim_priv_ipc *record, struct sim_mem **ret_mem)
{
	struct sim_share share = { .flags = record->flags };
	int ret = import_by_handle(pdd, record->share_handle, wanted->va, &wanted->id, ret_mem);

	if (ret == -EINVAL) {
		ret = sim_mem_new(pdd, wanted, ret_mem);
		if (ret < 0)
			return ret;
		memcpy(share.handle, record->share_handle, sizeof(share.handle));
		if (name_mem(*ret_mem, &share) == -EINVAL) {
			sim_mem_free(*ret_mem);
			ret = import_by_handle(pdd, share.handle, wanted->va, &wanted->id, ret_mem);
		}
	}
	if (ret == 0)
		(*ret_mem)->imported = record->is_imported != 0;
	return ret;
}
