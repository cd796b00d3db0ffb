/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers for tests of the simulator's command buffers: a GPU opened with libdrm_amdgpu, buffers
 * and copies. */
#ifndef TEST_NATIVE_SIM_GPU_H
#define TEST_NATIVE_SIM_GPU_H

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <unistd.h>

#include "sim_test.h"

#define PAGE     4096u
#define MIB      (1u << 20)
#define GIB      (1ull << 30)
#define PACKET   7u
#define COPY_MAX 0x400000u
#define IB_BYTES 65536u

/* A GPU with a command buffer. The GPU has a render file of its own. */
struct gpu {
	int fd;
	amdgpu_device_handle device;
	amdgpu_context_handle context;
	amdgpu_bo_handle ib;
	uint64_t ib_va;
	amdgpu_va_handle ib_range;
	uint32_t *dwords;
	uint32_t used;
};

struct buffer {
	amdgpu_bo_handle bo;
	amdgpu_va_handle range;
	uint64_t va, size;
};

static void map(struct gpu *gpu, struct buffer *buffer)
{
	assert_int_equal(amdgpu_va_range_alloc(gpu->device, amdgpu_gpu_va_range_general,
					       buffer->size, PAGE, 0, &buffer->va, &buffer->range,
					       0),
			 0);
	assert_int_equal(
		amdgpu_bo_va_op(buffer->bo, 0, buffer->size, buffer->va, 0, AMDGPU_VA_OP_MAP), 0);
}

static struct buffer new_buffer(struct gpu *gpu, uint64_t size, uint32_t heap)
{
	struct amdgpu_bo_alloc_request request = { .alloc_size = size,
						   .phys_alignment = PAGE,
						   .preferred_heap = heap };
	struct buffer buffer = { .size = size };

	assert_int_equal(amdgpu_bo_alloc(gpu->device, &request, &buffer.bo), 0);
	map(gpu, &buffer);
	return buffer;
}

static struct buffer user_buffer(struct gpu *gpu, void *memory, uint64_t size)
{
	struct buffer buffer = { .size = size };

	assert_int_equal(amdgpu_create_bo_from_user_mem(gpu->device, memory, size, &buffer.bo), 0);
	map(gpu, &buffer);
	return buffer;
}

static struct buffer import(struct gpu *gpu, int fd)
{
	struct amdgpu_bo_import_result result;
	struct buffer buffer;

	assert_int_equal(amdgpu_bo_import(gpu->device, amdgpu_bo_handle_type_dma_buf_fd,
					  (uint32_t)fd, &result),
			 0);
	buffer = (struct buffer){ .bo = result.buf_handle, .size = result.alloc_size };
	map(gpu, &buffer);
	return buffer;
}

static int export(const struct buffer *buffer)
{
	uint32_t fd;

	assert_int_equal(amdgpu_bo_export(buffer->bo, amdgpu_bo_handle_type_dma_buf_fd, &fd), 0);
	return (int)fd;
}

static void drop(struct buffer *buffer)
{
	assert_int_equal(
		amdgpu_bo_va_op(buffer->bo, 0, buffer->size, buffer->va, 0, AMDGPU_VA_OP_UNMAP), 0);
	assert_int_equal(amdgpu_va_range_free(buffer->range), 0);
	assert_int_equal(amdgpu_bo_free(buffer->bo), 0);
}

static void *cpu(const struct buffer *buffer)
{
	void *memory;

	assert_int_equal(amdgpu_bo_cpu_map(buffer->bo, &memory), 0);
	return memory;
}

static struct gpu open_gpu(unsigned int minor)
{
	struct gpu gpu = { 0 };
	struct buffer ib;
	uint32_t major_version, minor_version;
	char path[64];

	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
	gpu.fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(gpu.fd >= 0);
	assert_int_equal(
		amdgpu_device_initialize(gpu.fd, &major_version, &minor_version, &gpu.device), 0);
	assert_int_equal(amdgpu_cs_ctx_create(gpu.device, &gpu.context), 0);
	ib = new_buffer(&gpu, IB_BYTES, AMDGPU_GEM_DOMAIN_GTT);
	gpu.dwords = cpu(&ib);
	gpu.ib = ib.bo;
	gpu.ib_va = ib.va;
	gpu.ib_range = ib.range;
	return gpu;
}

static void end_context(struct gpu *gpu)
{
	if (gpu->context)
		assert_int_equal(amdgpu_cs_ctx_free(gpu->context), 0);
	gpu->context = NULL;
}

static void close_gpu(struct gpu *gpu)
{
	struct buffer ib = { gpu->ib, gpu->ib_range, gpu->ib_va, IB_BYTES };

	end_context(gpu);
	assert_int_equal(amdgpu_bo_cpu_unmap(gpu->ib), 0);
	drop(&ib);
	assert_int_equal(amdgpu_device_deinitialize(gpu->device), 0);
	assert_int_equal(close(gpu->fd), 0);
}

static void put_copy(struct gpu *gpu, uint64_t to, uint64_t from, uint64_t size)
{
	while (size) {
		uint32_t bytes = size < COPY_MAX ? (uint32_t)size : COPY_MAX;
		uint32_t packet[PACKET] = { 1,
					    bytes - 1,
					    0,
					    (uint32_t)from,
					    (uint32_t)(from >> 32),
					    (uint32_t)to,
					    (uint32_t)(to >> 32) };

		memcpy(gpu->dwords + gpu->used, packet, sizeof(packet));
		gpu->used += PACKET;
		to += bytes;
		from += bytes;
		size -= bytes;
	}
}

/* Submits the packets put so far on @ring, with the buffers of @list. */
static struct amdgpu_cs_fence submit(struct gpu *gpu, uint32_t ring, amdgpu_bo_list_handle list)
{
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = gpu->ib_va };
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = ring,
		.number_of_ibs = 1,
		.ibs = &ib,
		.resources = list,
	};

	while (gpu->used % 8)
		gpu->dwords[gpu->used++] = 0;
	ib.size = gpu->used;
	gpu->used = 0;
	assert_int_equal(amdgpu_cs_submit(gpu->context, 0, &request, 1), 0);
	return (struct amdgpu_cs_fence){ .context = gpu->context,
					 .ip_type = AMDGPU_HW_IP_DMA,
					 .ring = ring,
					 .fence = request.seq_no };
}

static amdgpu_bo_list_handle list_of(struct gpu *gpu, struct buffer *a, struct buffer *b)
{
	amdgpu_bo_handle bos[] = { gpu->ib, a->bo, b->bo };
	amdgpu_bo_list_handle list;

	assert_int_equal(amdgpu_bo_list_create(gpu->device, 3, bos, NULL, &list), 0);
	return list;
}

static bool wait_for(struct amdgpu_cs_fence *fence, uint64_t timeout_ns)
{
	uint32_t expired = 0;

	assert_int_equal(amdgpu_cs_query_fence_status(fence, timeout_ns, 0, &expired), 0);
	return expired;
}

static struct amdgpu_cs_fence start_copy(struct gpu *gpu, uint32_t ring, struct buffer *to,
					 struct buffer *from, uint64_t size)
{
	amdgpu_bo_list_handle list = list_of(gpu, to, from);
	struct amdgpu_cs_fence fence;

	put_copy(gpu, to->va, from->va, size);
	fence = submit(gpu, ring, list);
	assert_int_equal(amdgpu_bo_list_destroy(list), 0);
	return fence;
}

static void copy(struct gpu *gpu, uint32_t ring, struct buffer *to, struct buffer *from,
		 uint64_t size)
{
	struct amdgpu_cs_fence fence = start_copy(gpu, ring, to, from, size);

	assert_true(wait_for(&fence, AMDGPU_TIMEOUT_INFINITE));
}

#endif
