/* SPDX-License-Identifier: GPL-2.0-only */
/* Opens GPUs with libdrm_amdgpu and submits command buffers to the copy engine. The tests choose
 * the packets and check the results. */
#include "cs_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raw_kfd.h"

#define IB_BYTES 4096
#define LIMIT_NS 10000000000ull

int cs_map(struct cs_gpu *gpu, struct cs_bo *bo)
{
	int ret;

	ret = amdgpu_va_range_alloc(gpu->device, amdgpu_gpu_va_range_general, bo->size, 4096, 0,
				    &bo->address, &bo->va, 0);
	if (ret < 0)
		return ret;
	return amdgpu_bo_va_op(bo->handle, 0, bo->size, bo->address, 0, AMDGPU_VA_OP_MAP);
}

int cs_alloc(struct cs_gpu *gpu, uint32_t domain, uint64_t size, struct cs_bo *bo)
{
	struct amdgpu_bo_alloc_request request = {
		.alloc_size = size,
		.phys_alignment = 4096,
		.preferred_heap = domain,
		.flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED,
	};
	int ret;

	memset(bo, 0, sizeof(*bo));
	bo->size = size;
	ret = amdgpu_bo_alloc(gpu->device, &request, &bo->handle);
	if (ret == 0)
		ret = cs_map(gpu, bo);
	if (ret == 0)
		ret = amdgpu_bo_cpu_map(bo->handle, &bo->cpu);
	return ret;
}

int cs_wrap_user(struct cs_gpu *gpu, void *memory, uint64_t size, struct cs_bo *bo)
{
	int ret;

	memset(bo, 0, sizeof(*bo));
	bo->size = size;
	bo->cpu = memory;
	ret = amdgpu_create_bo_from_user_mem(gpu->device, memory, size, &bo->handle);
	return ret < 0 ? ret : cs_map(gpu, bo);
}

int cs_open(int index, struct cs_gpu *gpu)
{
	struct raw_gpu gpus[RAW_GPUS];
	uint32_t major, minor;
	int count, ret;

	memset(gpu, 0, sizeof(*gpu));
	ret = raw_list_gpus(gpus, &count, NULL);
	if (ret < 0)
		return ret;
	if (index >= count)
		return -ENODEV;
	ret = raw_open_render(&gpus[index], &gpu->fd);
	if (ret == 0)
		ret = amdgpu_device_initialize(gpu->fd, &major, &minor, &gpu->device);
	if (ret == 0)
		ret = amdgpu_cs_ctx_create(gpu->device, &gpu->context);
	if (ret < 0)
		return ret;
	gpu->ib = calloc(1, sizeof(*gpu->ib));
	return gpu->ib ? cs_alloc(gpu, AMDGPU_GEM_DOMAIN_GTT, IB_BYTES, gpu->ib) : -ENOMEM;
}

static int cs_submit(struct cs_gpu *gpu, const struct cs_job *job, amdgpu_bo_list_handle list)
{
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = gpu->ib->address, .size = job->count };
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = job->ring,
		.resources = list,
		.number_of_ibs = 1,
		.ibs = &ib,
	};
	struct amdgpu_cs_fence fence = {
		.context = gpu->context,
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = job->ring,
	};
	uint32_t expired = 0;
	int ret;

	ret = amdgpu_cs_submit(gpu->context, 0, &request, 1);
	if (ret < 0)
		return ret;
	fence.fence = request.seq_no;
	ret = amdgpu_cs_query_fence_status(&fence, LIMIT_NS, 0, &expired);
	if (ret < 0)
		return ret;
	return expired ? 0 : -ETIME;
}

int cs_run(struct cs_gpu *gpu, const struct cs_job *job)
{
	amdgpu_bo_list_handle list = NULL;
	amdgpu_bo_handle bos[5];
	int ret;

	memset(gpu->ib->cpu, 0xff, IB_BYTES);
	memcpy(gpu->ib->cpu, job->words, job->count * sizeof(uint32_t));
	bos[0] = gpu->ib->handle;
	memcpy(bos + 1, job->bos, sizeof(job->bos));
	ret = amdgpu_bo_list_create(gpu->device, job->bo_count + 1, bos, NULL, &list);
	if (ret < 0)
		return ret;
	ret = cs_submit(gpu, job, list);
	(void)amdgpu_bo_list_destroy(list);
	return ret;
}

void cs_build_copy(uint32_t words[16], uint64_t from, uint64_t to, uint32_t bytes)
{
	memset(words, 0, 16 * sizeof(*words));
	words[0] = 1;
	words[1] = bytes - 1;
	words[3] = (uint32_t)from;
	words[4] = (uint32_t)(from >> 32);
	words[5] = (uint32_t)to;
	words[6] = (uint32_t)(to >> 32);
}

int cs_copy(struct cs_gpu *gpu, unsigned int ring, const struct cs_bo *from, const struct cs_bo *to,
	    uint32_t bytes)
{
	uint32_t words[16];
	struct cs_job job = {
		.words = words,
		.count = 8,
		.ring = ring,
		.bos = { from->handle, to->handle },
		.bo_count = 2,
	};

	cs_build_copy(words, from->address, to->address, bytes);
	return cs_run(gpu, &job);
}
