/* SPDX-License-Identifier: GPL-2.0-only */
/* KFD handles and GEM handles for restores of shared BOs: each call takes the lowest number that is
 * free, as the kernel does. Calls that the kernel would refuse are findings. Only restore.h
 * includes this. */
#ifndef TEST_FUZZ_MEMORY_H
#define TEST_FUZZ_MEMORY_H

#include <amdgpu_drm.h>
#include <drm.h>

#include "kernel/kfd_priv.h"

#define FUZZ_GPUS    8
#define FUZZ_NUMBERS (1u << 18)
#define FUZZ_GEMS    (1u << 18)

static struct fuzz_memory {
	/* By GPU, in the order of RESTORE, and number. */
	bool used[FUZZ_GPUS][FUZZ_NUMBERS];
	uint32_t lowest[FUZZ_GPUS];
	bool noted;
	bool gems[FUZZ_GEMS];
	uint32_t lowest_gem;
} * memory;

static inline unsigned int fuzz_gpu_of(uint32_t user_id)
{
	unsigned int i = 0;

	while (i < kernel.restored.num_devices && kernel.restored_devices[i].user_gpu_id != user_id)
		i++;
	promise(i < kernel.restored.num_devices && i < FUZZ_GPUS);
	return i;
}

/* RESTORE gives its BOs the handles of their records. */
static inline void fuzz_note_restored(void)
{
	const struct kfd_criu_args *args = &kernel.restored;
	const struct kfd_bo_bucket *bos = (void *)(uintptr_t)args->bos;
	struct kfd_priv priv = {
		.bytes = (void *)(uintptr_t)args->priv_data,
		.size = args->priv_data_size,
		.num_devices = args->num_devices,
		.num_bos = args->num_bos,
		.num_objects = args->num_objects,
	};
	struct kfd_priv_bo_record record;

	memory->noted = true;
	priv.layout = kfd_priv_parse(&priv);
	for (uint32_t i = 0; i < args->num_bos; i++) {
		if (!kfd_priv_read_bo(&priv, i, &record) && record.handle < FUZZ_NUMBERS)
			memory->used[fuzz_gpu_of(bos[i].gpu_id)][record.handle] = true;
	}
}

static inline int fuzz_take_handle(uint32_t user_id, uint64_t *ret_handle)
{
	unsigned int at = fuzz_gpu_of(user_id);
	uint32_t *number = &memory->lowest[at];

	while (*number < FUZZ_NUMBERS && memory->used[at][*number])
		(*number)++;
	/* The plugin bounds its fillers. */
	promise(*number < FUZZ_NUMBERS);
	memory->used[at][*number] = true;
	*ret_handle = KFD_HANDLE(user_id, *number);
	return 0;
}

static inline int fuzz_free_handle(uint64_t handle)
{
	unsigned int at = fuzz_gpu_of((uint32_t)(handle >> 32));
	bool *used = &memory->used[at][(uint32_t)handle % FUZZ_NUMBERS];

	promise(*used);
	*used = false;
	if (memory->lowest[at] > (uint32_t)handle)
		memory->lowest[at] = (uint32_t)handle;
	return 0;
}

static inline int fuzz_map_handle(const struct kfd_map_args *args)
{
	const uint32_t *gpu_ids = (void *)(uintptr_t)args->gpu_ids;

	/* As kfd_ioctl_map_memory_to_gpu() does, for another id. */
	for (uint32_t i = 0; i < args->num_gpus; i++) {
		bool known = false;

		for (uint32_t j = 0; j < kernel.restored.num_devices; j++)
			known |= kernel.restored_devices[j].user_gpu_id == gpu_ids[i];
		if (!known)
			return EINVAL;
	}
	return 0;
}

static inline int fuzz_kfd(unsigned long request, void *argument)
{
	/* before RESTORE: no process has the share handle */
	if (request == KFD_IOC_IPC_IMPORT)
		return EINVAL;
	if (!memory->noted)
		fuzz_note_restored();
	if (request == KFD_IOC_ALLOC_MEMORY) {
		struct kfd_alloc_args *args = argument;

		return fuzz_take_handle(args->gpu_id, &args->handle);
	}
	if (request == KFD_IOC_IMPORT_DMABUF) {
		struct kfd_import_args *args = argument;

		promise(fcntl((int)args->dmabuf_fd, F_GETFD) >= 0);
		return fuzz_take_handle(args->gpu_id, &args->handle);
	}
	if (request == KFD_IOC_FREE_MEMORY)
		return fuzz_free_handle(*(uint64_t *)argument);
	promise(request == KFD_IOC_MAP_MEMORY);
	return fuzz_map_handle(argument);
}

static inline uint32_t fuzz_take_gem(void)
{
	while (memory->lowest_gem < FUZZ_GEMS && memory->gems[memory->lowest_gem])
		memory->lowest_gem++;
	promise(memory->lowest_gem < FUZZ_GEMS);
	memory->gems[memory->lowest_gem] = true;
	return memory->lowest_gem;
}

/* The files of all GPUs have their numbers together: a machine of one GPU has one file. */
static inline int fuzz_render(unsigned long request, void *argument)
{
	if (request == DRM_IOCTL_AMDGPU_GEM_CREATE) {
		((union drm_amdgpu_gem_create *)argument)->out.handle = fuzz_take_gem();
		return 0;
	}
	if (request == DRM_IOCTL_PRIME_FD_TO_HANDLE) {
		promise(fcntl(((struct drm_prime_handle *)argument)->fd, F_GETFD) >= 0);
		((struct drm_prime_handle *)argument)->handle = fuzz_take_gem();
		return 0;
	}
	if (request == DRM_IOCTL_GEM_CLOSE) {
		uint32_t handle = ((struct drm_gem_close *)argument)->handle;

		promise(handle < FUZZ_GEMS && memory->gems[handle]);
		memory->gems[handle] = false;
		if (memory->lowest_gem > handle)
			memory->lowest_gem = handle;
		return 0;
	}
	if (request == DRM_IOCTL_AMDGPU_GEM_VA) {
		const struct drm_amdgpu_gem_va *args = argument;

		promise(memory->gems[args->handle] && args->map_size &&
			!((args->va_address | args->map_size | args->offset_in_bo) % 4096));
		return 0;
	}
	return ENOTTY;
}

/* The kernel allocates only those pages of the tables that are used. */
static inline void fuzz_memory_begin(void)
{
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	promise(memory != MAP_FAILED);
	memory->lowest_gem = 1;
	kernel.other_kfd = fuzz_kfd;
	kernel.other_render = fuzz_render;
}

static inline void fuzz_memory_end(void)
{
	(void)munmap(memory, sizeof(*memory));
}

#endif
