// SPDX-License-Identifier: GPL-2.0-only
/* A restore by a reader that does not know shared buffers: its messages lack their fields, as those
 * of CRIU's own plugin do. Nor does it repair queues.
 *
 *	before IMAGE
 *
 * Gives the driver all BOs and the private data of a KFD image. Prints the size of these data, and
 * what RESTORE returns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "criu-amdgpu-before.pb-c.h"
#include "raw_kfd.h"

#define FRAME 8 /* the length of the message */

static CriuKfd *read_image(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned char *bytes;
	CriuKfd *image;
	long size = 0;

	if (file && !fseek(file, 0, SEEK_END))
		size = ftell(file) - FRAME;
	bytes = size > 0 ? malloc((size_t)size) : NULL;
	if (!bytes || fseek(file, FRAME, SEEK_SET) || fread(bytes, (size_t)size, 1, file) != 1)
		return NULL;
	(void)fclose(file);
	image = criu_kfd__unpack(NULL, (size_t)size, bytes);
	free(bytes);
	return image;
}

static uint32_t fill_devices(const CriuKfd *image, const struct raw_process *process,
			     struct kfd_criu_device_bucket *devices)
{
	uint32_t count = 0;

	for (size_t i = 0; i < image->n_device_entries; i++) {
		uint32_t gpu_id = image->device_entries[i]->gpu_id;

		if (!gpu_id)
			continue;
		devices[count] = (struct kfd_criu_device_bucket){
			.user_gpu_id = gpu_id,
			.actual_gpu_id = process->gpu[count].gpu_id,
			.drm_fd = (uint32_t)process->render[count],
		};
		count++;
	}
	return count;
}

static int restore(const CriuKfd *image, struct raw_process *process)
{
	struct kfd_criu_device_bucket devices[RAW_GPUS];
	struct kfd_criu_bo_bucket *bos = calloc(image->n_bo_entries, sizeof(*bos));
	struct kfd_ioctl_criu_args args = {
		.op = KFD_CRIU_OP_RESTORE,
		.devices = (uintptr_t)devices,
		.bos = (uintptr_t)bos,
		.priv_data = (uintptr_t)image->priv_data.data,
		.priv_data_size = image->priv_data.len,
		.num_devices = fill_devices(image, process, devices),
		.num_bos = (uint32_t)image->n_bo_entries,
		.num_objects = image->num_of_objects,
	};

	for (size_t i = 0; bos && i < image->n_bo_entries; i++) {
		const KfdBoEntry *bo = image->bo_entries[i];

		bos[i] = (struct kfd_criu_bo_bucket){ .addr = bo->addr,
						      .size = bo->size,
						      .offset = bo->offset,
						      .gpu_id = bo->gpu_id,
						      .alloc_flags = bo->alloc_flags };
	}
	return bos ? raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &args) : -ENOMEM;
}

/* RESTORE opens the GPUs itself. */
static int open_gpus(struct raw_process *process)
{
	int ret = raw_open(process);

	for (int i = 0; !ret && i < process->gpus; i++)
		ret = raw_open_render(&process->gpu[i], &process->render[i]);
	return ret;
}

int main(int argc, char **argv)
{
	CriuKfd *image = argc == 2 ? read_image(argv[1]) : NULL;
	struct raw_process process;

	if (!image || open_gpus(&process) < 0) {
		(void)fprintf(stderr, "before: there is no image, or no GPU\n");
		return 2;
	}
	printf("bos %zu\n", image->n_bo_entries);
	for (size_t i = 0; i < image->n_bo_entries; i++)
		printf("flags 0x%x\n", image->bo_entries[i]->alloc_flags);
	printf("private %zu\n", image->priv_data.len);
	printf("before %d\n", restore(image, &process));
	return 0;
}
