// SPDX-License-Identifier: GPL-2.0-only
/* Buffers of a render file as the GEM ioctls see them: creation, description, and mapping in the
 * page tables. cs.c has the submission, info.c the description of the device. */
#include "cs.h"

#define VA_HOLE_START 0x0000800000000000ull
#define VA_HOLE_END   0xffff800000000000ull
#define VA_MASK       0x0000ffffffffffffull
#define LIST_MAPPINGS 65536u

static void init(struct sim_render *render, struct sim_gpu *gpu)
{
	memset(render, 0, sizeof(*render));
	render->gpu = gpu;
	sim_lock_init(&render->lock);
	sim_vm_init(&render->vm, gpu->sim);
	sim_ids_init(&render->contexts, 1);
	sim_ids_init(&render->bo_lists, 1);
}

int sim_render_init(struct sim_render *render, struct sim_gpu *gpu)
{
	int ret;

	ret = sim_fault(&gpu->sim->faults, "drm", "OPEN");
	if (ret < 0)
		return ret;
	init(render, gpu);
	render->counted = true;
	render->pasid = sim_pasid_new(gpu->sim);
	sim_count(gpu->sim, SIM_COUNT_RENDER_FILES, 1);
	return 0;
}

void sim_render_init_client(struct sim_render *render, struct sim_gpu *gpu)
{
	init(render, gpu);
}

void sim_render_closing(struct sim_render *render)
{
	__atomic_store_n(&render->closing, true, __ATOMIC_RELAXED);
	sim_jobs_drop(render, NULL);
	sim_cs_wait_idle(render);
}

void sim_render_done(struct sim_render *render)
{
	struct sim *sim = render->gpu->sim;

	sim_render_closing(render);
	sim_cs_objects_release(render);
	sim_vm_done(&render->vm);
	sim_ids_done(&render->contexts);
	sim_ids_done(&render->bo_lists);
	if (render->counted)
		sim_count(sim, SIM_COUNT_RENDER_FILES, -1);
}

int sim_render_handle_opened(struct sim_render *render, struct sim_bo *bo)
{
	if (bo->kind == SIM_BO_USERPTR && !sim_os_is_owner())
		return -EPERM;
	return sim_bo_va_get(bo, &render->vm);
}

void sim_render_handle_closed(struct sim_render *render, struct sim_bo *bo)
{
	sim_bo_va_put(bo, &render->vm);
}

int sim_render_check_cpu_map(const struct sim_bo *bo)
{
	if (bo->kind == SIM_BO_USERPTR || bo->flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS)
		return -EPERM;
	return bo->kind == SIM_BO_MEMORY ? 0 : -EINVAL;
}

/* Gives a new buffer its handle. Always consumes the caller's reference. */
static int give_handle(struct sim_render *render, struct sim_bo *bo, u32 *ret_handle)
{
	int ret = sim_os_handle_create(render, bo, ret_handle);

	sim_os_bo_put(bo);
	return ret;
}

static int create_check(struct sim_render *render, const union drm_amdgpu_gem_create *args)
{
	u64 limit = args->in.domains & AMDGPU_GEM_DOMAIN_GTT ? SIM_KNOB(render->gpu->sim, gtt_bytes)
							     : render->gpu->vram_bytes;

	if (args->in.domain_flags & ~(u64)DRM_BO_SETTABLE ||
	    args->in.domain_flags & AMDGPU_GEM_CREATE_ENCRYPTED)
		return -EINVAL;
	if (!args->in.domains ||
	    args->in.domains &
		    ~(u64)(AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_VRAM))
		return -EINVAL;
	if (args->in.alignment & (args->in.alignment - 1) || !args->in.bo_size)
		return -EINVAL;
	return args->in.bo_size >= limit ? -ENOMEM : 0;
}

int sim_gem_create(struct sim_render *render, union drm_amdgpu_gem_create *args)
{
	struct sim_bo_memory memory = {
		.domains = (u32)args->in.domains,
		/* amdgpu_gem.c: amdgpu_gem_create_ioctl(), amdgpu_gem_object_create();
		 * amdgpu_object.c: amdgpu_bo_create() drops a request for CPU access (6.12) */
		.flags = (args->in.domain_flags & ~(u64)AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED) |
			 AMDGPU_GEM_CREATE_VRAM_CLEARED | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE,
	};
	u64 alignment = args->in.alignment;
	struct sim_bo *bo;
	u32 handle;
	int ret;

	ret = create_check(render, args);
	if (ret < 0)
		return ret;
	bo = sim_os_bo_new(render->gpu,
			   (args->in.bo_size + SIM_PAGE_SIZE - 1) & ~(SIM_PAGE_SIZE - 1));
	if (!bo)
		return -ENOMEM;
	bo->alignment = max(alignment, (u64)SIM_PAGE_SIZE);
	ret = sim_bo_set_memory(bo, &memory);
	if (ret == -ENOMEM && memory.domains & AMDGPU_GEM_DOMAIN_VRAM && !bo->charged) {
		/* full VRAM: amdgpu falls back to system memory and keeps the preference */
		memory.domains = AMDGPU_GEM_DOMAIN_GTT;
		ret = sim_bo_set_memory(bo, &memory);
		bo->domains = (u32)args->in.domains;
	}
	if (ret < 0) {
		sim_os_bo_put(bo);
		return ret;
	}
	ret = give_handle(render, bo, &handle);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.handle = handle;
	return 0;
}

int sim_gem_mmap(struct sim_render *render, union drm_amdgpu_gem_mmap *args)
{
	struct sim_bo *bo = sim_os_handle_lookup(render, args->in.handle);
	int ret;

	if (!bo)
		return -ENOENT;
	ret = sim_render_check_cpu_map(bo);
	if (ret == 0)
		args->out.addr_ptr = sim_os_bo_mmap_offset(bo);
	sim_os_bo_put(bo);
	return ret;
}

static int userptr_check(const struct drm_amdgpu_gem_userptr *args)
{
	const u32 known = AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_ANONONLY |
			  AMDGPU_GEM_USERPTR_VALIDATE | AMDGPU_GEM_USERPTR_REGISTER;

	if ((args->addr | args->size) % SIM_PAGE_SIZE || args->flags & ~known)
		return -EINVAL;
	if (!(args->flags & (AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_REGISTER)))
		return -EACCES;
	if (args->size == 0)
		return -EOVERFLOW;
	return args->addr + args->size < args->addr ? -EINVAL : 0;
}

/* ttm_bo_mem_space() of a GTT without room evicts what was used least recently, which may be of
 * KFD: amdgpu_amdkfd_evict_userptr() and the fences of KFD then stop the queues of that process. */
static void note_eviction(struct sim_gpu *gpu)
{
	u64 size = SIM_KNOB(gpu->sim, gtt_bytes), used;

	sim_lock(&gpu->sim->memory_lock);
	used = gpu->gtt_used;
	sim_unlock(&gpu->sim->memory_lock);
	if (used > size)
		sim_violation(gpu->sim, "GPU %u: %llu bytes of the GTT evict buffers", gpu->gpu_id,
			      (unsigned long long)(used - size));
}

static int userptr_validate(struct sim_bo *bo, const struct drm_amdgpu_gem_userptr *args)
{
	int ret;

	if (!(args->flags & AMDGPU_GEM_USERPTR_VALIDATE))
		return 0;
	if (args->size >= SIM_KNOB(bo->gpu->sim, gtt_bytes))
		return -ENOMEM;
	ret = sim_os_mm_check(args->addr, SIM_PAGE_SIZE);
	if (ret == 0 && args->flags & AMDGPU_GEM_USERPTR_ANONONLY && sim_os_mm_has_file(args->addr))
		return -EPERM;
	if (ret == 0)
		ret = sim_os_mm_check(args->addr, args->size);
	if (ret == 0)
		note_eviction(bo->gpu);
	return ret < 0 ? ret : sim_os_bo_pin_user(bo);
}

int sim_gem_userptr(struct sim_render *render, struct drm_amdgpu_gem_userptr *args)
{
	struct sim_bo *bo;
	int ret;

	ret = userptr_check(args);
	if (ret < 0)
		return ret;
	bo = sim_os_bo_new(render->gpu, args->size);
	if (!bo)
		return -ENOMEM;
	ret = sim_bo_set_user(bo, args->addr, (args->flags & AMDGPU_GEM_USERPTR_READONLY) != 0,
			      false);
	if (ret == 0)
		ret = userptr_validate(bo, args);
	if (ret < 0) {
		sim_os_bo_put(bo);
		return ret;
	}
	return give_handle(render, bo, &args->handle);
}

static int va_check(const struct sim_drm_gem_va *args)
{
	const u32 known = AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE |
			  AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_PAGE_EXECUTABLE |
			  AMDGPU_VM_MTYPE_MASK | DRM_VM_NOALLOC;
	u64 start = args->va_address & VA_MASK;

	if (args->va_address < SIM_VA_BOTTOM)
		return -EINVAL;
	if (args->va_address >= VA_HOLE_START && args->va_address < VA_HOLE_END)
		return -EINVAL;
	if (start + args->map_size < start ||
	    start + args->map_size > SIM_VM_BYTES - SIM_VA_TOP_RESERVED)
		return -EINVAL;
	if (args->flags & ~known)
		return -EINVAL;
	if (args->operation < AMDGPU_VA_OP_MAP || args->operation > AMDGPU_VA_OP_REPLACE)
		return -EINVAL;
	return (start | args->offset_in_bo | args->map_size) % SIM_PAGE_SIZE || !args->map_size
		       ? -EINVAL
		       : 0;
}

static int va_map(struct sim_render *render, struct sim_bo *bo, const struct sim_drm_gem_va *args)
{
	u64 start = args->va_address & VA_MASK;
	struct sim_mapping mapping = {
		.start = start,
		.end = start + args->map_size,
		.offset = args->offset_in_bo,
		.bo = bo,
		.flags = args->flags,
		.origin = SIM_VM_GEM,
	};
	int ret;

	if (args->offset_in_bo > bo->size || args->map_size > bo->size - args->offset_in_bo)
		return -EINVAL;
	if (args->operation == AMDGPU_VA_OP_REPLACE) {
		ret = sim_vm_clear(&render->vm, mapping.start, mapping.end);
		if (ret < 0)
			return ret;
	}
	return sim_vm_map(&render->vm, &mapping);
}

static int va_unmap(struct sim_render *render, struct sim_bo *bo, u64 start)
{
	enum sim_vm_origin origin;
	int ret = sim_vm_unmap(&render->vm, bo, start, &origin);

	if (ret == 0 && origin == SIM_VM_KFD)
		sim_violation(render->gpu->sim,
			      "GEM_VA removes the mapping at 0x%llx, which KFD has made", start);
	return ret;
}

int sim_gem_va(struct sim_render *render, struct sim_drm_gem_va *args)
{
	u64 start = args->va_address & VA_MASK;
	struct sim_bo *bo;
	int ret;

	ret = va_check(args);
	if (ret < 0)
		return ret;
	if (render->compute && !SIM_KNOB(render->gpu->sim, compute_gem_va))
		sim_violation(render->gpu->sim,
			      "GEM_VA on a compute VM, which this kernel does not "
			      "keep valid");
	if (args->operation == AMDGPU_VA_OP_CLEAR)
		return sim_vm_clear(&render->vm, start, start + args->map_size);
	bo = sim_os_handle_lookup(render, args->handle);
	if (!bo)
		return -ENOENT;
	if (args->operation == AMDGPU_VA_OP_UNMAP)
		ret = va_unmap(render, bo, start);
	else
		ret = va_map(render, bo, args);
	sim_os_bo_put(bo);
	return ret;
}

static int op_create_info(struct sim_bo *bo, u64 user)
{
	union drm_amdgpu_gem_create info = { .in = { .bo_size = bo->size,
						     .alignment = bo->alignment,
						     .domains = bo->domains,
						     .domain_flags = bo->flags } };

	return sim_os_copy_to_user(user, &info, sizeof(info));
}

static int copy_entries(struct sim_mapping *list, u32 count, u64 user)
{
	u32 i;

	for (i = 0; i < count; i++) {
		struct sim_drm_gem_vm_entry entry = {
			.addr = list[i].start,
			.size = list[i].end - list[i].start,
			.offset = list[i].offset,
			.flags = list[i].flags,
		};

		if (sim_os_copy_to_user(user + i * sizeof(entry), &entry, sizeof(entry)) < 0)
			return -EFAULT;
	}
	return 0;
}

/* amdgpu_gem.c: amdgpu_gem_op_ioctl() (7.3). The list has the mappings that KFD has made, too. */
static int op_mapping_info(struct sim_render *render, struct sim_bo *bo,
			   struct sim_drm_gem_op *args)
{
	u32 room = min(args->num_entries, LIST_MAPPINGS), count;
	struct sim_mapping *list;
	int ret = 0;

	list = calloc(1, (room + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	count = sim_vm_list(&render->vm, bo, list, room);
	if (count <= room)
		ret = copy_entries(list, count, args->value);
	args->num_entries = count;
	free(list);
	return ret;
}

int sim_gem_op(struct sim_render *render, struct sim_drm_gem_op *args)
{
	struct sim_bo *bo;
	int ret = -EINVAL;

	if (args->padding)
		return -EINVAL;
	bo = sim_os_handle_lookup(render, args->handle);
	if (!bo)
		return -ENOENT;
	if (args->op == AMDGPU_GEM_OP_GET_GEM_CREATE_INFO)
		ret = op_create_info(bo, args->value);
	else if (args->op == DRM_GEM_OP_MAPPING_INFO && render->gpu->sim->knobs.list_handles)
		ret = op_mapping_info(render, bo, args);
	sim_os_bo_put(bo);
	return ret;
}

/* amdgpu_object.c: amdgpu_bo_set_metadata() (6.12) keeps the flags if there are no bytes. */
static int set_metadata(struct sim_bo *bo, const struct drm_amdgpu_gem_metadata *args)
{
	struct sim_bo_metadata *metadata = NULL;

	if (args->data.data_size_bytes > sizeof(args->data.data))
		return -EINVAL;
	if (args->data.data_size_bytes) {
		metadata = calloc(1, sizeof(*metadata));
		if (!metadata)
			return -ENOMEM;
		metadata->bytes = args->data.data_size_bytes;
		memcpy(metadata->data, args->data.data, metadata->bytes);
	}
	sim_lock(&bo->lock);
	free(bo->metadata);
	bo->metadata = metadata;
	if (metadata)
		bo->metadata_flags = args->data.flags;
	bo->tiling = args->data.tiling_info;
	sim_unlock(&bo->lock);
	return 0;
}

static void get_metadata(struct sim_bo *bo, struct drm_amdgpu_gem_metadata *args)
{
	sim_lock(&bo->lock);
	args->data.tiling_info = bo->tiling;
	args->data.flags = bo->metadata_flags;
	args->data.data_size_bytes = bo->metadata ? bo->metadata->bytes : 0;
	if (bo->metadata)
		memcpy(args->data.data, bo->metadata->data, bo->metadata->bytes);
	sim_unlock(&bo->lock);
}

/* amdgpu_gem.c: amdgpu_gem_metadata_ioctl() (6.12). Another operation fails with -EPERM. */
int sim_gem_metadata(struct sim_render *render, struct drm_amdgpu_gem_metadata *args)
{
	struct sim_bo *bo = sim_os_handle_lookup(render, args->handle);
	int ret = -EPERM;

	if (!bo)
		return -ENOENT;
	if (args->op == AMDGPU_GEM_METADATA_OP_SET_METADATA) {
		ret = set_metadata(bo, args);
	} else if (args->op == AMDGPU_GEM_METADATA_OP_GET_METADATA) {
		get_metadata(bo, args);
		ret = 0;
	}
	sim_os_bo_put(bo);
	return ret;
}

static int list_one(struct sim_render *render, u32 handle, u64 user)
{
	struct sim_drm_gem_list_entry entry = { .gem_handle = handle };
	struct sim_bo *bo = sim_os_handle_lookup(render, handle);

	if (!bo)
		return -EAGAIN;
	entry.flags = bo->origin ? 1 : 0;
	entry.size = bo->size;
	entry.preferred_domains = bo->domains;
	entry.alloc_flags = bo->flags & DRM_BO_SETTABLE;
	entry.alignment = bo->alignment;
	if (!SIM_KNOB(render->gpu->sim, list_alignment_bytes))
		entry.alignment /= SIM_PAGE_SIZE;
	sim_os_bo_put(bo);
	return sim_os_copy_to_user(user, &entry, sizeof(entry));
}

int sim_gem_list_handles(struct sim_render *render, struct sim_drm_gem_list_handles *args)
{
	u32 count = 0, handle, i = 0;
	int ret;

	if (!render->gpu->sim->knobs.list_handles || args->padding)
		return -EINVAL;
	for (handle = sim_os_handle_next(render, 1); handle;
	     handle = sim_os_handle_next(render, handle + 1))
		count++;
	if (args->num_entries < count) {
		args->num_entries = count;
		return 0;
	}
	for (handle = sim_os_handle_next(render, 1); handle && i < count;
	     handle = sim_os_handle_next(render, handle + 1), i++) {
		ret = list_one(render, handle,
			       args->entries + i * sizeof(struct sim_drm_gem_list_entry));
		if (ret < 0)
			return ret;
	}
	args->num_entries = i;
	return 0;
}
