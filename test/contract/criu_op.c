/* SPDX-License-Identifier: GPL-2.0-only */
/* Wrappers around CRIU_OP, without checks of their own. */
#include "criu_op.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct criu_image *criu_image_new(void)
{
	void *image = mmap(NULL, sizeof(struct criu_image), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return image == MAP_FAILED ? NULL : image;
}

int criu_process_info(int kfd, struct criu_image *image)
{
	memset(&image->args, 0, sizeof(image->args));
	image->args.op = KFD_CRIU_OP_PROCESS_INFO;
	return raw_ioctl(kfd, AMDKFD_IOC_CRIU_OP, &image->args);
}

struct kfd_ioctl_criu_args criu_checkpoint_args(struct criu_image *image)
{
	struct kfd_ioctl_criu_args args = image->args;

	args.op = KFD_CRIU_OP_CHECKPOINT;
	args.devices = (uintptr_t)image->devices;
	args.bos = (uintptr_t)image->bos;
	args.priv_data = (uintptr_t)image->priv;
	return args;
}

int criu_checkpoint(int kfd, struct criu_image *image)
{
	struct kfd_ioctl_criu_args args = criu_checkpoint_args(image);

	return raw_ioctl(kfd, AMDKFD_IOC_CRIU_OP, &args);
}

int criu_unpause(int kfd)
{
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_UNPAUSE };

	return raw_ioctl(kfd, AMDKFD_IOC_CRIU_OP, &args);
}

void criu_close_dmabufs(struct criu_image *image)
{
	for (uint32_t i = 0; i < image->args.num_bos; i++) {
		if (image->bos[i].dmabuf_fd != KFD_INVALID_FD)
			close((int)image->bos[i].dmabuf_fd);
	}
}

int criu_restore(struct raw_process *process, struct criu_image *image)
{
	struct kfd_ioctl_criu_args args = criu_checkpoint_args(image);

	args.op = KFD_CRIU_OP_RESTORE;
	for (uint32_t d = 0; d < image->args.num_devices; d++) {
		for (int i = 0; i < process->gpus; i++) {
			if (process->gpu[i].gpu_id == image->devices[d].actual_gpu_id)
				image->devices[d].drm_fd = (uint32_t)process->render[i];
		}
	}
	return raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &args);
}

int criu_resume(int kfd, uint32_t pid)
{
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_RESUME, .pid = pid };

	return raw_ioctl(kfd, AMDKFD_IOC_CRIU_OP, &args);
}

int criu_find_bo(const struct criu_image *image, uint32_t flags)
{
	for (uint32_t i = 0; i < image->args.num_bos; i++) {
		if ((image->bos[i].alloc_flags & flags) == flags)
			return (int)i;
	}
	return -1;
}
