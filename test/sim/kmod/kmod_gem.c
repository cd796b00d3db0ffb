// SPDX-License-Identifier: GPL-2.0-only
/* Buffers as GEM objects: reference counts, handles, CPU mappings and dma-bufs, with the code of
 * the DRM core. The model has the contents. */
#include <drm/drm_gem.h>
#include <drm/drm_prime.h>
#include <drm/drm_vma_manager.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "kmod.h"

static void gem_free(struct drm_gem_object *gem)
{
	struct kmod_bo *bo = kmod_bo_of_gem(gem);

	drm_gem_object_release(gem);
	sim_bo_done(&bo->bo);
	if (bo->shown)
		dma_buf_put(bo->shown);
	kfree(bo);
}

static int gem_open(struct drm_gem_object *gem, struct drm_file *file)
{
	struct kmod_render *render = file->driver_priv;

	return sim_render_handle_opened(&render->render, &kmod_bo_of_gem(gem)->bo);
}

static void gem_close(struct drm_gem_object *gem, struct drm_file *file)
{
	struct kmod_render *render = file->driver_priv;

	sim_render_handle_closed(&render->render, &kmod_bo_of_gem(gem)->bo);
}

/* The first page of the block around a fault: small and aligned, so that sparse buffers stay
 * sparse. */
static vm_fault_t map_block(struct vm_area_struct *vma, unsigned long address, struct sim_bo *bo)
{
	unsigned long pages = vma_pages(vma);
	unsigned long base = vma->vm_pgoff - drm_vma_node_start(&kmod_bo_of(bo)->gem.vma_node);
	unsigned long wanted = (address - vma->vm_start) >> PAGE_SHIFT;
	unsigned long first = wanted - wanted % KMOD_FAULT_PAGES;
	unsigned long end = min(first + KMOD_FAULT_PAGES, pages);
	vm_fault_t result = VM_FAULT_SIGBUS;
	unsigned long i;

	for (i = first; i < end; i++) {
		void *page = sim_bo_page(bo, base + i, true);
		vm_fault_t ret = VM_FAULT_OOM;

		if (page)
			ret = vmf_insert_pfn(vma, vma->vm_start + (i << PAGE_SHIFT),
					     PHYS_PFN(__pa(page)));
		if (i == wanted)
			result = ret;
		if (ret & VM_FAULT_ERROR)
			return i > wanted ? result : ret;
	}
	return result;
}

static vm_fault_t gem_fault(struct vm_fault *vmf)
{
	struct drm_gem_object *gem = vmf->vma->vm_private_data;

	struct sim_bo *bo = &kmod_bo_of_gem(gem)->bo;

	if (sim_bo_is_invisible(bo))
		return VM_FAULT_SIGBUS;
	sim_bo_touch(bo);
	return map_block(vmf->vma, vmf->address, bo);
}

/* /proc/PID/mem and ptrace use this, also for mappings without access. */
static int gem_access(struct vm_area_struct *vma, unsigned long addr, void *data, int length,
		      int write)
{
	struct drm_gem_object *gem = vma->vm_private_data;
	struct sim_bo *bo = &kmod_bo_of_gem(gem)->bo;
	u64 offset = (u64)(vma->vm_pgoff - drm_vma_node_start(&gem->vma_node)) << PAGE_SHIFT;
	int ret;

	offset += addr - vma->vm_start;
	if (offset >= bo->size || sim_bo_is_invisible(bo))
		return -EIO;
	length = (int)min_t(u64, length, bo->size - offset);
	ret = write ? sim_bo_write(bo, offset, data, length)
		    : sim_bo_read(bo, offset, data, length);
	return ret < 0 ? -EIO : length;
}

static const struct vm_operations_struct gem_vm_ops = {
	.fault = gem_fault,
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
	.access = gem_access,
};

static bool is_cow(vm_flags_t flags)
{
	return (flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE;
}

static int gem_mmap(struct drm_gem_object *gem, struct vm_area_struct *vma)
{
	struct sim_bo *bo = &kmod_bo_of_gem(gem)->bo;
	int ret;

	ret = sim_fault(&bo->gpu->sim->faults, "drm", "MMAP");
	if (ret == 0)
		ret = sim_render_check_cpu_map(bo);
	if (ret < 0)
		return ret;
	/* old libhsakmt maps with PROT_NONE and MAP_PRIVATE; such a mapping cannot be written, so
	 * allow it */
	if (is_cow(vma->vm_flags) && !(vma->vm_flags & VM_ACCESS_FLAGS))
		vm_flags_clear(vma, VM_MAYWRITE);
	if (is_cow(vma->vm_flags))
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	return 0;
}

static void dmabuf_release(struct dma_buf *dmabuf)
{
	struct drm_gem_object *gem = dmabuf->priv;

	sim_count(kmod_bo_of_gem(gem)->bo.gpu->sim, SIM_COUNT_DMABUFS, -1);
	drm_gem_dmabuf_release(dmabuf);
}

static const struct dma_buf_ops dmabuf_ops = {
	.cache_sgt_mapping = true,
	.attach = drm_gem_map_attach,
	.detach = drm_gem_map_detach,
	.map_dma_buf = drm_gem_map_dma_buf,
	.unmap_dma_buf = drm_gem_unmap_dma_buf,
	.release = dmabuf_release,
	.mmap = drm_gem_dmabuf_mmap,
};

static struct dma_buf *gem_export(struct drm_gem_object *gem, int flags)
{
	struct sim_bo *bo = &kmod_bo_of_gem(gem)->bo;
	struct dma_buf_export_info info = {
		.exp_name = "drm",
		.owner = THIS_MODULE,
		.ops = &dmabuf_ops,
		.size = gem->size,
		.flags = flags,
		.priv = gem,
		.resv = gem->resv,
	};
	struct dma_buf *dmabuf;
	int ret;

	ret = sim_fault(&bo->gpu->sim->faults, "drm", "PRIME_EXPORT");
	if (ret < 0)
		return ERR_PTR(ret);
	if (bo->kind == SIM_BO_USERPTR || bo->flags & DRM_BO_VM_ALWAYS_VALID)
		return ERR_PTR(-EPERM);
	dmabuf = drm_gem_dmabuf_export(gem->dev, &info);
	if (!IS_ERR(dmabuf))
		sim_count(bo->gpu->sim, SIM_COUNT_DMABUFS, 1);
	return dmabuf;
}

static const struct drm_gem_object_funcs gem_funcs = {
	.free = gem_free,
	.open = gem_open,
	.close = gem_close,
	.export = gem_export,
	.mmap = gem_mmap,
	.vm_ops = &gem_vm_ops,
};

struct sim_bo *sim_os_bo_new(struct sim_gpu *gpu, u64 size_bytes)
{
	struct kmod_gpu *device = sim_gpu_device(gpu)->front;
	struct kmod_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL);

	if (!bo)
		return NULL;
	bo->gem.funcs = &gem_funcs;
	drm_gem_private_object_init(device->drm, &bo->gem, size_bytes);
	sim_bo_init(&bo->bo, gpu, size_bytes);
	if (drm_gem_create_mmap_offset(&bo->gem) < 0) {
		drm_gem_object_put(&bo->gem);
		return NULL;
	}
	return &bo->bo;
}

void sim_os_bo_get(struct sim_bo *bo)
{
	drm_gem_object_get(&kmod_bo_of(bo)->gem);
}

void sim_os_bo_put(struct sim_bo *bo)
{
	drm_gem_object_put(&kmod_bo_of(bo)->gem);
}

u64 sim_os_bo_mmap_offset(struct sim_bo *bo)
{
	return drm_vma_node_offset_addr(&kmod_bo_of(bo)->gem.vma_node);
}

int sim_os_bo_allow(struct sim_bo *bo, struct sim_render *render)
{
	return drm_vma_node_allow(&kmod_bo_of(bo)->gem.vma_node, kmod_render_of(render)->file);
}

void sim_os_bo_disallow(struct sim_bo *bo, struct sim_render *render)
{
	drm_vma_node_revoke(&kmod_bo_of(bo)->gem.vma_node, kmod_render_of(render)->file);
}

struct sim_bo *sim_os_handle_lookup(struct sim_render *render, u32 handle)
{
	struct drm_gem_object *gem = drm_gem_object_lookup(kmod_render_of(render)->file, handle);

	return gem ? &kmod_bo_of_gem(gem)->bo : NULL;
}

int sim_os_handle_create(struct sim_render *render, struct sim_bo *bo, u32 *ret_handle)
{
	return drm_gem_handle_create(kmod_render_of(render)->file, &kmod_bo_of(bo)->gem,
				     ret_handle);
}

void sim_os_handle_delete(struct sim_render *render, u32 handle)
{
	(void)drm_gem_handle_delete(kmod_render_of(render)->file, handle);
}

u32 sim_os_handle_next(struct sim_render *render, u32 from)
{
	struct drm_file *file = kmod_render_of(render)->file;
	int handle = (int)from;

	spin_lock(&file->table_lock);
	if (!idr_get_next(&file->object_idr, &handle))
		handle = 0;
	spin_unlock(&file->table_lock);
	return (u32)handle;
}

/* The buffer of one of this module's dma-bufs, borrowed, or NULL. */
static struct kmod_bo *bo_of_dmabuf(struct dma_buf *dmabuf)
{
	return dmabuf->ops == &dmabuf_ops ? kmod_bo_of_gem(dmabuf->priv) : NULL;
}

/* A buffer of @gpu that shows the pages of another GPU's buffer. It holds the dma-buf, as an
 * attachment does. */
static struct sim_bo *import_from_peer(struct sim_gpu *gpu, struct dma_buf *dmabuf,
				       struct sim_bo *origin)
{
	struct sim_bo *bo = sim_os_bo_new(gpu, origin->size);

	if (!bo)
		return NULL;
	sim_bo_set_origin(bo, origin);
	get_dma_buf(dmabuf);
	kmod_bo_of(bo)->shown = dmabuf;
	return bo;
}

/* amdgpu_dma_buf.c (6.1, 6.12): amdgpu_gem_prime_import() */
static int import(struct dma_buf *dmabuf, struct sim_gpu *gpu, struct sim_bo **ret_bo)
{
	struct kmod_bo *bo = bo_of_dmabuf(dmabuf);
	struct sim_bo *imported;

	if (!bo)
		return -EINVAL;
	if (sim_gpu_same_device(bo->bo.gpu, gpu)) {
		sim_os_bo_get(&bo->bo);
		*ret_bo = &bo->bo;
		return 0;
	}
	imported = import_from_peer(gpu, dmabuf, &bo->bo);
	if (!imported)
		return -ENOMEM;
	*ret_bo = imported;
	return 0;
}

int sim_os_dmabuf_import(struct sim_dmabuf *dmabuf, struct sim_gpu *gpu, struct sim_bo **ret_bo)
{
	return import((struct dma_buf *)dmabuf, gpu, ret_bo);
}

struct sim_bo *sim_os_dmabuf_bo(struct sim_dmabuf *dmabuf)
{
	struct kmod_bo *bo = bo_of_dmabuf((struct dma_buf *)dmabuf);

	return bo ? &bo->bo : NULL;
}

struct drm_gem_object *kmod_gem_import(struct drm_device *drm, struct dma_buf *dmabuf)
{
	struct kmod_gpu *device = drm->dev_private;
	struct sim_bo *bo;
	int ret;

	ret = sim_fault(&device->gpu->sim->faults, "drm", "PRIME_IMPORT");
	if (ret == 0)
		ret = import(dmabuf, device->gpu, &bo);
	return ret < 0 ? ERR_PTR(ret) : &kmod_bo_of(bo)->gem;
}

int sim_os_dmabuf_new(struct sim_bo *bo, bool writable, struct sim_dmabuf **ret_dmabuf)
{
	struct dma_buf *dmabuf = gem_export(&kmod_bo_of(bo)->gem, writable ? O_RDWR : O_RDONLY);

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	*ret_dmabuf = (struct sim_dmabuf *)dmabuf;
	return 0;
}

struct sim_dmabuf *sim_os_bo_dmabuf(struct sim_bo *bo)
{
	struct drm_gem_object *gem = &kmod_bo_of(bo)->gem;
	struct dma_buf *dmabuf;

	mutex_lock(&gem->dev->object_name_lock);
	dmabuf = gem->dma_buf;
	if (dmabuf)
		get_dma_buf(dmabuf);
	mutex_unlock(&gem->dev->object_name_lock);
	return (struct sim_dmabuf *)dmabuf;
}

int sim_os_prime_export(struct sim_render *render, u32 handle, bool writable,
			struct sim_dmabuf **ret_dmabuf)
{
	struct drm_file *file = kmod_render_of(render)->file;
	struct dma_buf *dmabuf = drm_gem_prime_handle_to_dmabuf(file->minor->dev, file, handle,
								writable ? DRM_RDWR : 0);

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	*ret_dmabuf = (struct sim_dmabuf *)dmabuf;
	return 0;
}

int sim_os_prime_import(struct sim_render *render, int fd, u32 *ret_handle)
{
	struct drm_file *file = kmod_render_of(render)->file;

	return drm_gem_prime_fd_to_handle(file->minor->dev, file, fd, ret_handle);
}

/* The model has the handles of all processes. */
int sim_os_share_enter(struct sim_dmabuf *dmabuf, const struct sim_share *share)
{
	return 0;
}

int sim_os_share_find(const u32 *handle, struct sim_share *ret_share,
		      struct sim_dmabuf **ret_dmabuf)
{
	return -EINVAL;
}

void sim_os_share_leave(const u32 *handle)
{
}

void sim_os_dmabuf_get(struct sim_dmabuf *dmabuf)
{
	get_dma_buf((struct dma_buf *)dmabuf);
}

/* The reference is what the kernel counts. */
void sim_os_dmabuf_count_mem(struct sim_dmabuf *dmabuf, int change)
{
}

void sim_os_dmabuf_put(struct sim_dmabuf *dmabuf)
{
	dma_buf_put((struct dma_buf *)dmabuf);
}

int sim_os_dmabuf_from_fd(int fd, struct sim_dmabuf **ret_dmabuf)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	*ret_dmabuf = (struct sim_dmabuf *)dmabuf;
	return 0;
}

int sim_os_fd_reserve(bool cloexec)
{
	return get_unused_fd_flags(cloexec ? O_CLOEXEC : 0);
}

void sim_os_fd_cancel(int fd)
{
	put_unused_fd(fd);
}

void sim_os_fd_install(int fd, struct sim_dmabuf *dmabuf)
{
	fd_install(fd, get_file(((struct dma_buf *)dmabuf)->file));
}

MODULE_IMPORT_NS(DMA_BUF);
