// SPDX-License-Identifier: GPL-2.0-only
#include "buffers.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contract.h"
#include "criu_op.h"
#include "raw_gem.h"

struct raw_bo buffer_new(struct raw_process *process, int gpu, uint32_t flags)
{
	struct raw_bo bo;

	EXPECT(raw_alloc(process, process->gpu[gpu].gpu_id, flags, SIZE, NULL, &bo), 0);
	return bo;
}

struct raw_bo buffer_new_mapped(struct raw_process *process, int gpu, uint32_t flags)
{
	struct raw_bo bo;

	EXPECT(raw_alloc_mapped(process, gpu, flags, SIZE, &bo), 0);
	return bo;
}

void buffer_free(struct raw_process *process, const struct raw_bo *bo)
{
	EXPECT(raw_free(process, bo), 0);
}

int buffer_export(struct raw_process *process, const struct raw_bo *bo)
{
	int fd;

	if (!KERNEL(exports))
		return (int)buffer_save(process, bo).dmabuf_fd;
	EXPECT(raw_export(process, bo, &fd), 0);
	return fd;
}

struct raw_bo buffer_import(struct raw_process *process, int gpu, int fd)
{
	void *address = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct raw_bo bo;

	EXPECT(raw_import(process, process->gpu[gpu].gpu_id, fd, address, &bo), 0);
	return bo;
}

int buffer_try_save(struct raw_process *process, const struct raw_bo *bo,
		    struct kfd_criu_bo_bucket *ret_bucket)
{
	struct criu_image *image = criu_image_new();
	int ret;

	EXPECT(criu_process_info(process->kfd, image), 0);
	EXPECT_TRUE(image->args.num_bos <= CRIU_BOS &&
		    image->args.priv_data_size <= CRIU_PRIV_BYTES);
	ret = criu_checkpoint(process->kfd, image);
	EXPECT(criu_unpause(process->kfd), 0);
	for (uint32_t i = 0; ret == 0 && i < image->args.num_bos; i++) {
		if (image->bos[i].addr == (uintptr_t)bo->address)
			*ret_bucket = image->bos[i];
		else if (image->bos[i].dmabuf_fd != KFD_INVALID_FD)
			(void)close((int)image->bos[i].dmabuf_fd);
	}
	(void)munmap(image, sizeof(*image));
	return ret;
}

struct kfd_criu_bo_bucket buffer_save(struct raw_process *process, const struct raw_bo *bo)
{
	struct kfd_criu_bo_bucket bucket = { 0 };

	EXPECT(buffer_try_save(process, bo, &bucket), 0);
	EXPECT(bucket.addr, (uintptr_t)bo->address);
	return bucket;
}

uint32_t buffer_name(int render, int fd)
{
	uint32_t handle;

	EXPECT(raw_gem_import(render, fd, &handle), 0);
	return handle;
}

uint32_t buffer_name_bo(struct raw_process *process, int gpu, const struct raw_bo *bo)
{
	int fd = buffer_export(process, bo);
	uint32_t handle = buffer_name(process->render[gpu], fd);

	(void)close(fd);
	return handle;
}

ino_t inode(int fd)
{
	struct stat stat;

	EXPECT(fstat(fd, &stat), 0);
	return stat.st_ino;
}

int count_partitions(void)
{
	struct raw_gpu gpus[RAW_GPUS];
	int count, same = 0;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	for (int i = 0; i < count; i++)
		same += gpus[i].location_id >> 3 == gpus[0].location_id >> 3;
	return same;
}

int other_device(void)
{
	struct raw_gpu gpus[RAW_GPUS];
	int count, same = count_partitions();

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	if (same == count)
		rule_skip("needs two devices");
	return same;
}
