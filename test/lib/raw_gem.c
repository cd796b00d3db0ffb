/* SPDX-License-Identifier: GPL-2.0-only */
/* Thin wrappers around the GEM ioctls of a render file. Tests of the ioctls themselves build their
 * arguments on their own. */
#include "raw_gem.h"

#include <amdgpu_drm.h>
#include <errno.h>

#include "raw_kfd.h"

int raw_gem_create(int render, uint32_t domain, uint64_t size, uint32_t *ret_handle)
{
	union drm_amdgpu_gem_create args = { .in = { .bo_size = size, .domains = domain } };
	int ret = raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_CREATE, &args);

	if (ret < 0)
		return ret;
	*ret_handle = args.out.handle;
	return 0;
}

int raw_gem_import(int render, int dmabuf, uint32_t *ret_handle)
{
	struct drm_prime_handle args = { .fd = dmabuf };
	int ret = raw_ioctl(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);

	if (ret < 0)
		return ret;
	*ret_handle = args.handle;
	return 0;
}

int raw_gem_close(int render, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	return raw_ioctl(render, DRM_IOCTL_GEM_CLOSE, &args);
}

static int change_va(int render, struct drm_amdgpu_gem_va args)
{
	args.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_PAGE_EXECUTABLE;
	return raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

int raw_gem_map(int render, uint32_t handle, uint64_t address, uint64_t offset, uint64_t size)
{
	return change_va(render, (struct drm_amdgpu_gem_va){
					 .handle = handle,
					 .operation = AMDGPU_VA_OP_MAP,
					 .va_address = address,
					 .offset_in_bo = offset,
					 .map_size = size,
				 });
}

int raw_gem_unmap(int render, uint32_t handle, uint64_t address, uint64_t size)
{
	return change_va(render, (struct drm_amdgpu_gem_va){
					 .handle = handle,
					 .operation = AMDGPU_VA_OP_UNMAP,
					 .va_address = address,
					 .map_size = size,
				 });
}

int raw_gem_offset(int render, uint32_t handle, uint64_t *ret_offset)
{
	union drm_amdgpu_gem_mmap args = { .in = { .handle = handle } };
	int ret = raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_MMAP, &args);

	if (ret < 0)
		return ret;
	*ret_offset = args.out.addr_ptr;
	return 0;
}

int raw_gem_take_hole(int render, struct raw_gem_holes *holes)
{
	if (holes->count == RAW_GEM_HOLES)
		return -ENOSPC;
	return raw_gem_create(render, AMDGPU_GEM_DOMAIN_GTT, 4096, &holes->handles[holes->count++]);
}

int raw_gem_free_holes(int render, struct raw_gem_holes *holes)
{
	int ret = 0;

	while (ret == 0 && holes->count)
		ret = raw_gem_close(render, holes->handles[--holes->count]);
	return ret;
}

int raw_gem_mark(int render, uint32_t handle, uint32_t mark)
{
	struct drm_amdgpu_gem_metadata args = {
		.handle = handle,
		.op = AMDGPU_GEM_METADATA_OP_SET_METADATA,
		.data = { .flags = 5,
			  .tiling_info = 7,
			  .data_size_bytes = sizeof(mark),
			  .data = { mark } },
	};

	return raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_METADATA, &args);
}

int raw_gem_read_mark(int render, uint32_t handle, uint32_t *ret_mark)
{
	struct drm_amdgpu_gem_metadata args = {
		.handle = handle,
		.op = AMDGPU_GEM_METADATA_OP_GET_METADATA,
	};
	int ret = raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_METADATA, &args);

	if (ret < 0)
		return ret;
	if (args.data.data_size_bytes != sizeof(*ret_mark))
		return -ENODATA;
	*ret_mark = args.data.data[0];
	return 0;
}
