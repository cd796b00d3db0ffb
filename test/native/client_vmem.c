// SPDX-License-Identifier: GPL-2.0-only
/* Makes and verifies buffers with GEM handles. */
#include "client_vmem.h"

#include <amdgpu_drm.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "raw_gem.h"
#include "simulator.h"

static uint64_t half_of(const struct workload_bo *bo)
{
	return bo->size / 2 / WORKLOAD_PAGE * WORKLOAD_PAGE;
}

static int import(int render, int dmabuf, uint32_t *ret_handle)
{
	uint32_t filler;
	int ret = raw_gem_create(render, AMDGPU_GEM_DOMAIN_GTT, WORKLOAD_PAGE, &filler);

	if (!ret)
		ret = raw_gem_import(render, dmabuf, ret_handle);
	/* The first number stays free. Later ones are taken in turn. */
	return ret ? ret : raw_gem_close(render, filler);
}

static int map_on_gpu(const struct raw_process *process, int gpu, const struct workload_bo *bo,
		      int dmabuf, uint64_t address, uint32_t *ret_handle)
{
	int ret = import(process->render[gpu], dmabuf, ret_handle);

	return ret ? ret : raw_gem_map(process->render[gpu], *ret_handle, address, 0, bo->size);
}

static int map_half(const struct raw_process *process, const struct workload_bo *bo, int dmabuf,
		    uint64_t address)
{
	int render = process->render[bo->gpu];
	uint32_t handle;
	int ret = raw_gem_import(render, dmabuf, &handle);

	return ret ? ret
		   : raw_gem_map(render, handle, workload_second_address(address), half_of(bo),
				 bo->size - half_of(bo));
}

int client_vmem_make(struct raw_process *process, const struct workload *workload, size_t index,
		     uint64_t address, struct raw_bo *ret_bo)
{
	const struct workload_bo *bo = &workload->bos[index];
	int gpu = (int)bo->gpu, peer = (gpu + 1) % (int)workload->gpus, dmabuf = -1, ret;
	uint32_t handle;

	*ret_bo = (struct raw_bo){ .size = bo->size };
	ret = raw_alloc_at(process, process->gpu[gpu].gpu_id, RAW_VRAM, ret_bo);
	ret_bo->address = (char *)(uintptr_t)address;
	if (!ret)
		ret = raw_export(process, ret_bo, &dmabuf);
	if (ret < 0)
		return client_complain(ret, "cannot allocate memory without an address");
	ret = map_on_gpu(process, gpu, bo, dmabuf, address, &handle);
	if (!ret)
		ret = map_half(process, bo, dmabuf, address);
	if (!ret && peer != gpu)
		ret = map_on_gpu(process, peer, bo, dmabuf, address, &handle);
	(void)close(dmabuf);
	return ret < 0 ? client_complain(ret, "cannot map memory by its render node") : 0;
}

int client_vmem_import(const struct raw_process *process, const struct workload_bo *bo, int dmabuf,
		       uint64_t address, uint64_t *ret_offset)
{
	uint32_t handle;
	int ret = map_on_gpu(process, (int)bo->gpu, bo, dmabuf, address, &handle);

	if (!ret)
		ret = raw_gem_offset(process->render[bo->gpu], handle, ret_offset);
	return ret < 0 ? client_complain(ret, "cannot import memory by a render node") : 0;
}

int client_vmem_map_again(struct raw_process *process, const struct workload_bo *bo,
			  const struct raw_bo *raw)
{
	int dmabuf = -1, ret = raw_export(process, raw, &dmabuf);

	if (!ret)
		ret = map_half(process, bo, dmabuf, (uintptr_t)raw->address);
	if (dmabuf >= 0)
		(void)close(dmabuf);
	return ret < 0 ? client_complain(ret, "cannot map a buffer of KFD by its render node") : 0;
}

int client_vmem_mark(int render, const struct workload *workload, size_t index, int dmabuf)
{
	uint32_t handle;
	int ret = import(render, dmabuf, &handle);

	if (!ret)
		ret = raw_gem_mark(render, handle, workload->task << 16 | (uint32_t)index);
	return ret < 0 ? client_complain(ret, "cannot note metadata at a buffer of KFD") : 0;
}

int client_vmem_mark_own(struct raw_process *process, const struct workload *workload, size_t index,
			 const struct raw_bo *raw)
{
	int dmabuf = -1, ret = raw_export(process, raw, &dmabuf);

	if (ret < 0)
		return client_complain(ret, "EXPORT_DMABUF");
	ret = client_vmem_mark(process->render[workload->bos[index].gpu], workload, index, dmabuf);
	(void)close(dmabuf);
	return ret;
}

/* Compares [@from, +@size) of the buffer with what GPUs see at @address. */
static int verify_va(const struct workload *workload, size_t index, uint64_t from, uint64_t size,
		     uint64_t address)
{
	int (*peek)(uint64_t va, void *data, size_t size) = simulator_find("amdgpu_sim_peek_va");
	bool is_of_kfd = workload->bos[index].kind == 'B';
	void *memory = malloc(CLIENT_PART);
	int ret = memory ? 0 : -ENOMEM;

	for (uint64_t at = 0; !ret && at < size; at += CLIENT_PART) {
		uint64_t part = size - at < CLIENT_PART ? size - at : CLIENT_PART;
		int gpus = peek(address + at, memory, part);

		if (gpus < 0)
			ret = client_complain(gpus, "GPUs do not see the same memory");
		else if (gpus != (from || workload->gpus == 1 || is_of_kfd ? 1 : 2))
			ret = client_complain(-EIO, "an address is mapped on more GPUs, or fewer");
		else if (workload_check(workload, index, from + at, memory, part) != part)
			ret = client_complain(-EIO, "memory at an address of the GPU is wrong");
	}
	free(memory);
	return ret;
}

int client_vmem_verify(const struct workload *workload, size_t index, uint64_t address)
{
	const struct workload_bo *bo = &workload->bos[index];
	int ret = verify_va(workload, index, 0, bo->size, address);

	if (!ret && half_of(bo))
		ret = verify_va(workload, index, half_of(bo), bo->size - half_of(bo),
				workload_second_address(address));
	if (!ret && bo->mapped &&
	    workload_check(workload, index, 0, (void *)(uintptr_t)address, bo->size) != bo->size)
		ret = client_complain(-EIO, "memory mapped for the CPU is wrong");
	return ret;
}
