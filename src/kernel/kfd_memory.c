// SPDX-License-Identifier: GPL-2.0-only
/* Calls of KFD that change the memory of the calling process. A restore imports shared BOs by
 * these. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"

#define PAGE 4096

int kfd_memory_import(int fd, uint32_t gpu_id, uint64_t addr, int dmabuf_fd, uint64_t *ret_handle)
{
	struct kfd_import_args args = {
		.va_addr = addr,
		.gpu_id = gpu_id,
		.dmabuf_fd = (uint32_t)dmabuf_fd,
	};
	int ret = xioctl(fd, KFD_IOC_IMPORT_DMABUF, &args);

	*ret_handle = args.handle;
	return ret;
}

int kfd_memory_has_share_handle(int fd, uint32_t gpu_id, const uint32_t *handle)
{
	struct kfd_ipc_import_args args = { .gpu_id = gpu_id };
	int ret;

	memcpy(args.share_handle, handle, sizeof(args.share_handle));
	ret = xioctl(fd, KFD_IOC_IPC_IMPORT, &args);
	/* ENOTTY: a driver without share handles, whose RESTORE refuses the image. */
	return ret == -ENODEV ? 1 : ret == -EINVAL || ret == -ENOTTY ? 0 : ret;
}

int kfd_memory_map(int fd, uint64_t handle, const uint32_t *gpu_ids, uint32_t num_gpus)
{
	struct kfd_map_args args = {
		.handle = handle,
		.gpu_ids = (uintptr_t)gpu_ids,
		.num_gpus = num_gpus,
	};

	return num_gpus ? xioctl(fd, KFD_IOC_MAP_MEMORY, &args) : 0;
}

int kfd_memory_take_handle(int fd, uint32_t gpu_id, uint64_t *ret_handle)
{
	struct kfd_alloc_args args = {
		.size = PAGE,
		.gpu_id = gpu_id,
		.flags = KFD_BO_GTT | KFD_BO_WRITABLE,
	};
	int ret = xioctl(fd, KFD_IOC_ALLOC_MEMORY, &args);

	*ret_handle = args.handle;
	return ret;
}

int kfd_memory_free(int fd, uint64_t handle)
{
	return xioctl(fd, KFD_IOC_FREE_MEMORY, &handle);
}
