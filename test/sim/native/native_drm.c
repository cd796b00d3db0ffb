// SPDX-License-Identifier: GPL-2.0-only
/* The ioctls of render nodes. This file handles the calls of the DRM core that render nodes allow,
 * passes the driver's calls to the model, and handles mmap(). */
#include <drm.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"

#define DRIVER_MINOR 64
#define SCHED        0x15 /* DRM_AMDGPU_SCHED */
#define ARGUMENT_MAX 512u
#define FOREIGN_NAME "foreign_sim"
#define DRIVER_NAME  "amdgpu"

static void give_text(char *to, __kernel_size_t *length, const char *text)
{
	size_t room = *length;

	*length = strlen(text);
	if (to && room)
		memcpy(to, text, min(room, strlen(text)));
}

static int get_version(struct native_file *file, void *argument)
{
	bool ours = file->kind == NATIVE_RENDER;
	struct drm_version *version = argument;

	version->version_major = ours ? 3 : 1;
	version->version_minor = ours ? DRIVER_MINOR : 0;
	version->version_patchlevel = 0;
	give_text(version->name, &version->name_len, ours ? DRIVER_NAME : FOREIGN_NAME);
	give_text(version->date, &version->date_len, "20150101");
	give_text(version->desc, &version->desc_len, "GPU (simulated)");
	return 0;
}

static int get_cap(void *argument)
{
	struct drm_get_cap *cap = argument;

	if (cap->capability != DRM_CAP_PRIME)
		return -EINVAL;
	cap->value = DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT;
	return 0;
}

static int core_ioctl(struct native_file *file, u32 number, void *argument)
{
	struct drm_prime_handle *prime = argument;
	struct drm_gem_close *gem_close = argument;

	if (number == 0x00)
		return get_version(file, argument);
	if (number == 0x0c)
		return get_cap(argument);
	if (file->kind != NATIVE_RENDER)
		return -EINVAL;
	switch (number) {
	case 0x09:
		return native_handle_close(file->render, gem_close->handle);
	case 0x2d:
		return native_prime_to_fd(file->render, prime->handle, prime->flags, &prime->fd);
	case 0x2e:
		return sim_os_prime_import(&file->render->render, prime->fd, &prime->handle);
	case 0x0a: /* names of buffers are for the owner of a display */
	case 0x0b:
		return -EACCES;
	default:
		return -EINVAL;
	}
}

static int call_driver(struct native_file *file, u32 number, void *argument)
{
	struct sim_render *render = &file->render->render;
	struct sim *sim = render->gpu->sim;
	int ret;

	switch (number) {
#define CALL(id, number, type, function)                   \
	case number:                                       \
		ret = sim_fault(&sim->faults, "drm", #id); \
		return ret < 0 ? ret : function(render, argument);
		SIM_RENDER_IOCTLS(CALL)
#undef CALL
	case SCHED: /* only for the master of a display */
		return -EACCES;
	default:
		return -EINVAL;
	}
}

/* The size of the model's struct: bytes that the caller leaves out read as zero. */
static u32 driver_size(u32 number)
{
	switch (number) {
#define SIZE(id, number, type, function) \
	case number:                     \
		return sizeof(type);
		SIM_RENDER_IOCTLS(SIZE)
#undef SIZE
	default:
		return 0;
	}
}

/* The argument is copied back whether the call failed or not, as in the kernel. */
int native_drm_ioctl(struct native_file *file, unsigned long request, void *argument)
{
	u32 number = request & 0xff, user_size = request >> 16 & 0x3fff, size = user_size;
	bool driver = number >= DRM_COMMAND_BASE && number < DRM_COMMAND_END;
	_Alignas(8) u8 copy[ARGUMENT_MAX] = { 0 };
	int ret;

	if ((request >> 8 & 0xff) != DRM_IOCTL_BASE)
		return -ENOTTY;
	if (driver && file->kind != NATIVE_RENDER)
		return -EINVAL;
	if (driver)
		size = min(driver_size(number - DRM_COMMAND_BASE), user_size);
	if (size > sizeof(copy) || (size && !argument))
		return size > sizeof(copy) ? -EINVAL : -EFAULT;
	memcpy(copy, argument, size);
	ret = driver ? call_driver(file, number - DRM_COMMAND_BASE, copy)
		     : core_ioctl(file, number, copy);
	if (request >> 30 & 2)
		memcpy(argument, copy, size);
	return ret;
}

static bool may_map(struct native *native, struct native_bo *bo, struct native_render *render)
{
	struct native_user *user;
	bool found;

	(void)pthread_mutex_lock(&native->lock);
	for (user = bo->users; user && user->render != render; user = user->next)
		;
	found = user && (user->allowed || user->handle);
	(void)pthread_mutex_unlock(&native->lock);
	return found;
}

static int check_mmap(struct native_bo *bo, size_t size, int prot, int flags)
{
	int ret = sim_fault(&bo->bo.gpu->sim->faults, "drm", "MMAP");

	if (ret < 0)
		return ret;
	if (!size || size > bo->bo.size + SIM_PAGE_SIZE - 1)
		return -EINVAL;
	ret = sim_render_check_cpu_map(&bo->bo);
	if (ret < 0)
		return ret;
	/* old libhsakmt maps PROT_NONE, MAP_PRIVATE; else there is no copy on write */
	return (flags & MAP_TYPE) == MAP_PRIVATE && prot != PROT_NONE ? -EINVAL : 0;
}

static void *map_bo(struct native_bo *bo, void *addr, size_t size, int prot, int flags,
		    int *ret_error)
{
	struct native_bo *storage = native_bo_of(sim_bo_storage(&bo->bo));
	/* drivers/gpu/drm/ttm/ttm_bo_vm.c: ttm_bo_vm_fault_reserved() (6.12) gives SIGBUS for an
	 * import of another device's buffer */
	bool imported = bo->bo.origin;
	int fd = imported ? bo->fd : storage->fd;
	void *mapping = MAP_FAILED;

	*ret_error = fd < 0 ? fd : 0;
	if (*ret_error == 0 && !imported && prot != PROT_NONE)
		*ret_error = native_bo_prepare_cpu(storage, 0, size);
	if (*ret_error == 0 && prot != PROT_NONE)
		sim_bo_touch(&bo->bo); /* as if at once */
	if (*ret_error == 0) {
		mapping = NATIVE_REAL(mmap)(addr, size, prot, (flags & ~MAP_TYPE) | MAP_SHARED, fd,
					    0);
		*ret_error = mapping == MAP_FAILED ? -errno : 0;
	}
	return mapping;
}

/* A mapping must begin at the start of a buffer, and only files that have a handle of the buffer
 * may map it. */
void *native_drm_mmap(struct native_file *file, void *addr, size_t size, int prot, int flags,
		      u64 offset, int *ret_error)
{
	struct native *native = native_get();
	void *mapping = MAP_FAILED;
	struct native_bo *bo;

	*ret_error = -EINVAL;
	if (file->kind != NATIVE_RENDER)
		return MAP_FAILED;
	bo = native_bo_by_offset(native, file->render->render.gpu, offset);
	if (!bo)
		return MAP_FAILED;
	*ret_error = may_map(native, bo, file->render) ? 0 : -EACCES;
	if (*ret_error == 0)
		*ret_error = check_mmap(bo, size, prot, flags);
	if (*ret_error == 0)
		mapping = map_bo(bo, addr, size, prot, flags, ret_error);
	native_bo_put(bo);
	return mapping;
}
