/* SPDX-License-Identifier: GPL-2.0-only */
/* A libdrm_amdgpu on plain memory, for tests whose dma-bufs are those of the fake kernel, or whose
 * process has to be without further threads. Tests of contents have the simulator (drm_calls.h).
 * Bytes move when a fence is polled. Each access that would make an engine fault counts as a
 * violation. A test can make each call fail.
 *
 * A test program includes this header once. Its functions replace those of the library. */
#ifndef TEST_UNIT_FAKE_GPU_H
#define TEST_UNIT_FAKE_GPU_H

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "fake_kernel.h"

#define FAMILY_AI   141
#define FIRST_VA    0x100000000ULL
#define RANGES      8192
#define SUBMISSIONS 32
#define RINGS       4
/* One bit each. */
#define AVAILABLE_RINGS 0x5
#define COPY_PACKET     1
#define PACKET_DWORDS   7
#define PAGE_SIZE_GPU   4096

enum memory_kind {
	OF_DMABUF,
	OF_USER,
	OF_DRIVER,
};

struct amdgpu_bo {
	struct amdgpu_device *device;
	enum memory_kind kind;
	uint8_t *memory;
	uint64_t size;
};

struct amdgpu_va {
	struct amdgpu_device *device;
	uint64_t va;
	uint64_t size;
	/* The BO that is mapped there. */
	struct amdgpu_bo *bo;
};

struct amdgpu_bo_list {
	uint32_t count;
	struct amdgpu_bo *bos[];
};

struct submission {
	uint64_t va;
	uint32_t dwords;
	struct amdgpu_bo_list *list;
};

struct amdgpu_context {
	struct amdgpu_device *device;
	struct ring {
		struct submission queue[SUBMISSIONS];
		uint64_t submitted;
		uint64_t done;
	} rings[RINGS];
};

struct amdgpu_device {
	int fd;
	struct amdgpu_va *ranges[RANGES];
	uint64_t next_va;
};

static struct fake_gpu {
	/* A copy while a process of the fake kernel runs is a violation. */
	bool wants_all_paused;
	/* The number of the call that fails, from 1; 0: none. */
	unsigned int fail_at;
	/* The driver keeps all rings for user queues. */
	bool has_no_rings;
	int fail_errno;
	atomic_uint calls;
	atomic_int objects;
	atomic_uint submissions;
	atomic_int in_list;
	atomic_uint violations;
	/* The lowest descriptor of an imported dma-buf, and the number of descriptors that an
	 * exec() would keep. */
	atomic_int lowest_dmabuf;
	atomic_uint inherited_dmabufs;
} gpu;

static inline int fake_gpu_begin(void **state)
{
	gpu = (struct fake_gpu){ .lowest_dmabuf = INT32_MAX };
	return fake_kernel_begin(state);
}

static inline int fake_gpu_end(void **state)
{
	int ret = fake_kernel_end(state);

	if (gpu.objects)
		printf("%d objects of libdrm are not freed\n", gpu.objects);
	if (gpu.violations)
		printf("%u violations of the GPU's rules\n", gpu.violations);
	return gpu.objects || gpu.violations ? -1 : ret;
}

/* Several threads may call the library at the same time. */
static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;

static inline pthread_mutex_t *lock_gpu(void)
{
	(void)pthread_mutex_lock(&gpu_lock);
	return &gpu_lock;
}

static inline void unlock_gpu(pthread_mutex_t **lock)
{
	(void)pthread_mutex_unlock(*lock);
}

#define LOCK_GPU __attribute__((cleanup(unlock_gpu), unused)) pthread_mutex_t *lock = lock_gpu()

/* A dma-buf is a file in memory. The driver rounds the size up to pages. */
static inline int new_dmabuf(uint32_t number, uint64_t size)
{
	int fd = memfd_create("bo", MFD_CLOEXEC);

	(void)number;
	assert_int_equal(
		ftruncate(fd, (off_t)((size + PAGE_SIZE_GPU - 1) / PAGE_SIZE_GPU * PAGE_SIZE_GPU)),
		0);
	return fd;
}

static inline bool next_call_fails(void)
{
	return ++gpu.calls == gpu.fail_at;
}

static inline void *new_object(size_t size)
{
	void *object = calloc(1, size);

	gpu.objects++;
	if (!object)
		abort();
	return object;
}

static inline int free_object(void *object)
{
	gpu.objects--;
	free(object);
	return 0;
}

#include "device_list.h"

int amdgpu_device_initialize(int fd, uint32_t *major_version, uint32_t *minor_version,
			     amdgpu_device_handle *device_handle)
{
	IN_LIST;
	LOCK_GPU;
	struct amdgpu_device *device;

	if (next_call_fails())
		return -gpu.fail_errno;
	device = new_object(sizeof(*device));
	device->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	device->next_va = FIRST_VA;
	*major_version = 3;
	*minor_version = 50;
	*device_handle = device;
	return 0;
}

int amdgpu_device_deinitialize(amdgpu_device_handle device)
{
	IN_LIST;
	LOCK_GPU;
	(void)close(device->fd);
	return free_object(device);
}

int amdgpu_device_get_fd(amdgpu_device_handle device)
{
	LOCK_GPU;
	return device->fd;
}

int amdgpu_query_gpu_info(amdgpu_device_handle device, struct amdgpu_gpu_info *info)
{
	LOCK_GPU;
	(void)device;
	if (next_call_fails())
		return -gpu.fail_errno;
	*info = (struct amdgpu_gpu_info){ .family_id = FAMILY_AI };
	return 0;
}

/* GPUVM_FAULT, which kernels before 6.8 do not have. */
int amdgpu_query_info(amdgpu_device_handle device, unsigned int info_id, unsigned int size,
		      void *value)
{
	LOCK_GPU;
	(void)device;
	if (next_call_fails())
		return -gpu.fail_errno;
	gpu.violations += info_id != 0x23 || size != 16;
	memset(value, 0, size);
	return 0;
}

int amdgpu_query_hw_ip_info(amdgpu_device_handle device, unsigned int type,
			    unsigned int ip_instance, struct drm_amdgpu_info_hw_ip *info)
{
	LOCK_GPU;
	(void)device;
	gpu.violations += type != AMDGPU_HW_IP_DMA || ip_instance;
	if (next_call_fails())
		return -gpu.fail_errno;
	*info = (struct drm_amdgpu_info_hw_ip){ .available_rings =
							gpu.has_no_rings ? 0 : AVAILABLE_RINGS };
	return 0;
}

static inline struct amdgpu_bo *new_bo(struct amdgpu_device *device, enum memory_kind kind,
				       void *memory, uint64_t size)
{
	struct amdgpu_bo *bo = new_object(sizeof(*bo));

	*bo = (struct amdgpu_bo){ device, kind, memory, size };
	return bo;
}

int amdgpu_bo_import(amdgpu_device_handle device, enum amdgpu_bo_handle_type type, uint32_t handle,
		     struct amdgpu_bo_import_result *output)
{
	LOCK_GPU;
	off_t size = lseek((int)handle, 0, SEEK_END);
	void *memory;

	gpu.violations += type != amdgpu_bo_handle_type_dma_buf_fd;
	gpu.inherited_dmabufs += !(fcntl((int)handle, F_GETFD) & FD_CLOEXEC);
	if ((int)handle < gpu.lowest_dmabuf)
		gpu.lowest_dmabuf = (int)handle;
	if (next_call_fails()) {
		/* The library returns -1 if a PRIME call fails. */
		errno = gpu.fail_errno;
		return -1;
	}
	memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)handle, 0);
	if (memory == MAP_FAILED)
		return -errno;
	output->buf_handle = new_bo(device, OF_DMABUF, memory, (uint64_t)size);
	output->alloc_size = (uint64_t)size;
	return 0;
}

/* The fake kernel knows each imported BO by this handle. */
int amdgpu_bo_export(amdgpu_bo_handle bo, enum amdgpu_bo_handle_type type, uint32_t *shared_handle)
{
	LOCK_GPU;
	gpu.violations += type != amdgpu_bo_handle_type_kms || bo->kind != OF_DMABUF;
	if (next_call_fails())
		return -gpu.fail_errno;
	*shared_handle = 1;
	return 0;
}

int amdgpu_create_bo_from_user_mem(amdgpu_device_handle device, void *memory, uint64_t size,
				   amdgpu_bo_handle *buf_handle)
{
	LOCK_GPU;
	gpu.violations += (uintptr_t)memory % PAGE_SIZE_GPU || size % PAGE_SIZE_GPU;
	if (next_call_fails())
		return -gpu.fail_errno;
	*buf_handle = new_bo(device, OF_USER, memory, size);
	return 0;
}

int amdgpu_bo_alloc(amdgpu_device_handle device, struct amdgpu_bo_alloc_request *request,
		    amdgpu_bo_handle *buf_handle)
{
	LOCK_GPU;
	if (next_call_fails())
		return -gpu.fail_errno;
	*buf_handle = new_bo(device, OF_DRIVER, aligned_alloc(PAGE_SIZE_GPU, request->alloc_size),
			     request->alloc_size);
	/* New memory of the driver is not zero. */
	memset((*buf_handle)->memory, 0xa5, request->alloc_size);
	return 0;
}

static inline bool is_mapped(const struct amdgpu_bo *bo)
{
	for (size_t i = 0; i < RANGES; i++) {
		if (bo->device->ranges[i] && bo->device->ranges[i]->bo == bo)
			return true;
	}
	return false;
}

int amdgpu_bo_free(amdgpu_bo_handle bo)
{
	LOCK_GPU;
	gpu.violations += is_mapped(bo);
	if (bo->kind == OF_DMABUF)
		(void)munmap(bo->memory, bo->size);
	if (bo->kind == OF_DRIVER)
		free(bo->memory);
	return free_object(bo);
}

int amdgpu_bo_cpu_map(amdgpu_bo_handle bo, void **cpu)
{
	LOCK_GPU;
	if (next_call_fails())
		return -gpu.fail_errno;
	gpu.objects++;
	*cpu = bo->memory;
	return 0;
}

int amdgpu_bo_cpu_unmap(amdgpu_bo_handle bo)
{
	LOCK_GPU;
	(void)bo;
	gpu.objects--;
	return 0;
}

int amdgpu_va_range_alloc(amdgpu_device_handle device, enum amdgpu_gpu_va_range type, uint64_t size,
			  uint64_t alignment, uint64_t required, uint64_t *va,
			  amdgpu_va_handle *va_range_handle, uint64_t flags)
{
	LOCK_GPU;
	struct amdgpu_va *range;
	size_t slot = 0;

	(void)type;
	(void)flags;
	gpu.violations += alignment % PAGE_SIZE_GPU || required;
	if (next_call_fails())
		return -gpu.fail_errno;
	while (device->ranges[slot])
		slot++;
	range = new_object(sizeof(*range));
	*range = (struct amdgpu_va){ .device = device, .va = device->next_va, .size = size };
	/* An unmapped page separates ranges. */
	device->next_va += size + PAGE_SIZE_GPU;
	device->ranges[slot] = range;
	*va = range->va;
	*va_range_handle = range;
	return 0;
}

int amdgpu_va_range_free(amdgpu_va_handle range)
{
	LOCK_GPU;
	size_t slot = 0;

	gpu.violations += range->bo != NULL;
	while (range->device->ranges[slot] != range)
		slot++;
	range->device->ranges[slot] = NULL;
	return free_object(range);
}

static inline struct amdgpu_va *find_range(struct amdgpu_device *device, uint64_t va, uint64_t size)
{
	for (size_t i = 0; i < RANGES; i++) {
		struct amdgpu_va *range = device->ranges[i];

		if (range && va >= range->va && va - range->va < range->size &&
		    size <= range->size - (va - range->va))
			return range;
	}
	return NULL;
}

int amdgpu_bo_va_op(amdgpu_bo_handle bo, uint64_t offset, uint64_t size, uint64_t address,
		    uint64_t flags, uint32_t operation)
{
	LOCK_GPU;
	struct amdgpu_va *range = find_range(bo->device, address, size);

	(void)flags;
	gpu.violations += !range || offset || size > bo->size;
	if (!range)
		return -EINVAL;
	if (operation == AMDGPU_VA_OP_UNMAP) {
		range->bo = NULL;
		return 0;
	}
	if (next_call_fails())
		return -gpu.fail_errno;
	range->bo = bo;
	return 0;
}

int amdgpu_bo_list_create(amdgpu_device_handle device, uint32_t count, amdgpu_bo_handle *bos,
			  uint8_t *priorities, amdgpu_bo_list_handle *result)
{
	LOCK_GPU;
	struct amdgpu_bo_list *list;

	(void)device;
	(void)priorities;
	if (next_call_fails())
		return -gpu.fail_errno;
	list = new_object(sizeof(*list) + count * sizeof(*bos));
	list->count = count;
	memcpy(list->bos, bos, count * sizeof(*bos));
	*result = list;
	return 0;
}

/* A submission keeps its list, as the kernel does, so the list is freed with the submission. */
int amdgpu_bo_list_destroy(amdgpu_bo_list_handle list)
{
	LOCK_GPU;
	(void)list;
	return 0;
}

int amdgpu_cs_ctx_create(amdgpu_device_handle device, amdgpu_context_handle *result)
{
	LOCK_GPU;
	struct amdgpu_context *context;

	if (next_call_fails())
		return -gpu.fail_errno;
	context = new_object(sizeof(*context));
	context->device = device;
	*result = context;
	return 0;
}

int amdgpu_cs_ctx_free(amdgpu_context_handle context)
{
	LOCK_GPU;
	/* Free the lists of submissions that no thread waited for. */
	for (size_t i = 0; i < RINGS * SUBMISSIONS; i++) {
		struct submission *left = &context->rings[i / SUBMISSIONS].queue[i % SUBMISSIONS];

		if (left->list)
			(void)free_object(left->list);
	}
	return free_object(context);
}

static inline bool any_process_runs(void)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (kernel.processes[i].num_devices && !kernel.processes[i].paused)
			return true;
	}
	return false;
}

int amdgpu_cs_submit(amdgpu_context_handle context, uint64_t flags,
		     struct amdgpu_cs_request *requests, uint32_t number_of_requests)
{
	LOCK_GPU;
	struct ring *ring = &context->rings[requests->ring % RINGS];
	struct submission *submission = &ring->queue[ring->submitted % SUBMISSIONS];

	gpu.violations += !(AVAILABLE_RINGS & 1u << requests->ring);
	gpu.violations += flags || number_of_requests != 1 || requests->number_of_ibs != 1 ||
			  requests->ip_type != AMDGPU_HW_IP_DMA || !requests->resources;
	/* A command buffer must be aligned, not empty, and padded. */
	gpu.violations += requests->ibs->ib_mc_address % 256 || !requests->ibs->size ||
			  requests->ibs->size % 8;
	if (next_call_fails()) {
		(void)free_object(requests->resources);
		return -gpu.fail_errno;
	}
	if (submission->list)
		(void)free_object(submission->list);
	gpu.violations += gpu.wants_all_paused && any_process_runs();
	gpu.submissions++;
	*submission = (struct submission){ requests->ibs->ib_mc_address, requests->ibs->size,
					   requests->resources };
	requests->seq_no = ++ring->submitted;
	return 0;
}

/* The memory at a GPU address. The engine may only access BOs in the submission's list. */
static inline uint8_t *resolve(struct amdgpu_device *device, const struct amdgpu_bo_list *list,
			       uint64_t va, uint64_t size)
{
	const struct amdgpu_va *range = find_range(device, va, size);

	for (uint32_t i = 0; range && range->bo && i < list->count; i++) {
		if (list->bos[i] == range->bo)
			return range->bo->memory + (va - range->va);
	}
	gpu.violations++;
	return NULL;
}

static inline void execute(struct amdgpu_device *device, const struct submission *submission)
{
	const uint8_t *bytes = resolve(device, submission->list, submission->va,
				       submission->dwords * sizeof(uint32_t));
	const uint32_t *dwords = (const void *)bytes;
	uint32_t at = 0;

	while (dwords && at < submission->dwords) {
		const uint32_t *packet = dwords + at;
		uint64_t size;
		uint8_t *from, *to;

		if (!*packet) { /* NOP */
			at++;
			continue;
		}
		if (*packet != COPY_PACKET || packet[2] ||
		    at + PACKET_DWORDS > submission->dwords) {
			gpu.violations++;
			return;
		}
		size = (uint64_t)packet[1] + 1;
		from = resolve(device, submission->list, packet[3] | (uint64_t)packet[4] << 32,
			       size);
		to = resolve(device, submission->list, packet[5] | (uint64_t)packet[6] << 32, size);
		if (!from || !to)
			return;
		memcpy(to, from, size);
		at += PACKET_DWORDS;
	}
}

int amdgpu_cs_query_fence_status(struct amdgpu_cs_fence *fence, uint64_t timeout_ns, uint64_t flags,
				 uint32_t *expired)
{
	LOCK_GPU;
	struct amdgpu_context *context = fence->context;
	struct ring *ring = &context->rings[fence->ring % RINGS];

	(void)timeout_ns;
	(void)flags;
	if (next_call_fails())
		return -gpu.fail_errno;
	*expired = 1;
	while (ring->done < fence->fence)
		execute(context->device, &ring->queue[ring->done++ % SUBMISSIONS]);
	return 0;
}

int amdgpu_cs_query_reset_state2(amdgpu_context_handle context, uint64_t *flags)
{
	LOCK_GPU;
	(void)context;
	if (next_call_fails())
		return -gpu.fail_errno;
	*flags = 0;
	return 0;
}

#endif
