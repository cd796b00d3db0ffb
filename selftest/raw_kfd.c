/* SPDX-License-Identifier: GPL-2.0-only */
/* Thin wrappers around KFD ioctls, and an SDMA queue on them. They check nothing that a test would
 * want to see. */
#include "raw_kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define NODES      "/sys/devices/virtual/kfd/kfd/topology/nodes"
#define RING_BYTES 65536
#define STEP_US    1000
#define WAIT_STEPS 20000
#define REST_STEPS 100

int raw_ioctl(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

int raw_read_properties(const char *path, const char *const *names, int count, uint32_t *numbers)
{
	FILE *file = fopen(path, "re");
	char key[64];
	long value;

	if (!file)
		return -errno;
	while (fscanf(file, "%63s %ld", key, &value) == 2)
		for (int i = 0; i < count; i++)
			if (strcmp(key, names[i]) == 0)
				numbers[i] = (uint32_t)value;
	fclose(file);
	return 0;
}

static int raw_read_node(int node, struct raw_gpu *ret_gpu)
{
	static const char *const names[] = { "drm_render_minor", "gfx_target_version",
					     "location_id" };
	uint32_t numbers[3] = { 0 };
	char path[128];
	FILE *stream;
	int n, ret;

	*ret_gpu = (struct raw_gpu){ .node = node };
	snprintf(path, sizeof(path), NODES "/%d/gpu_id", node);
	stream = fopen(path, "re");
	if (!stream)
		return -errno;
	errno = 0;
	n = fscanf(stream, "%u", &ret_gpu->gpu_id);
	fclose(stream);
	if (n != 1)
		return errno ? -errno : -EPROTO;
	snprintf(path, sizeof(path), NODES "/%d/properties", node);
	ret = raw_read_properties(path, names, 3, numbers);
	ret_gpu->render_minor = (int)numbers[0];
	ret_gpu->gfx_target_version = numbers[1];
	ret_gpu->location_id = numbers[2];
	return ret;
}

int raw_list_gpus(struct raw_gpu *gpus, int *ret_count, int *ret_hidden)
{
	int count = 0, hidden = 0;

	for (int node = 0; count < RAW_GPUS; node++) {
		int ret = raw_read_node(node, &gpus[count]);

		if (ret == -ENOENT)
			break;
		if (ret == -EPERM) {
			hidden++;
			continue;
		}
		if (ret < 0)
			return ret;
		if (gpus[count].gpu_id)
			count++;
	}
	*ret_count = count;
	if (ret_hidden)
		*ret_hidden = hidden;
	return 0;
}

int raw_open_render(const struct raw_gpu *gpu, int *ret_fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%d", gpu->render_minor);
	*ret_fd = open(path, O_RDWR | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

int raw_open(struct raw_process *process)
{
	int ret;

	memset(process, 0, sizeof(*process));
	process->kfd = -1;
	for (int i = 0; i < RAW_GPUS; i++)
		process->render[i] = -1;
	ret = raw_list_gpus(process->gpu, &process->gpus, NULL);
	if (ret < 0)
		return ret;
	process->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	return process->kfd < 0 ? -errno : 0;
}

int raw_acquire(struct raw_process *process, uint32_t gpu_id, int render_fd)
{
	struct kfd_ioctl_acquire_vm_args args = {
		.drm_fd = (uint32_t)render_fd,
		.gpu_id = gpu_id,
	};

	return raw_ioctl(process->kfd, AMDKFD_IOC_ACQUIRE_VM, &args);
}

int raw_acquire_all(struct raw_process *process)
{
	int ret = 0;

	for (int i = 0; ret == 0 && i < process->gpus; i++) {
		ret = raw_open_render(&process->gpu[i], &process->render[i]);
		if (ret == 0)
			ret = raw_acquire(process, process->gpu[i].gpu_id, process->render[i]);
	}
	return ret;
}

int raw_open_acquired(struct raw_process *process)
{
	int ret = raw_open(process);

	return ret ? ret : raw_acquire_all(process);
}

int raw_alloc_at(struct raw_process *process, uint32_t gpu_id, uint32_t flags, struct raw_bo *bo)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = (uintptr_t)bo->address,
		.size = bo->size,
		.gpu_id = gpu_id,
		.flags = flags,
		.mmap_offset = flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR ? (uintptr_t)bo->address : 0,
	};
	int ret = raw_ioctl(process->kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	if (ret < 0)
		return ret;
	bo->handle = args.handle;
	bo->mmap_offset = args.mmap_offset;
	return 0;
}

int raw_alloc(struct raw_process *process, uint32_t gpu_id, uint32_t flags, size_t size, void *user,
	      struct raw_bo *ret_bo)
{
	void *address = user;

	/* The address space is reserved by a mapping without access. User memory is there, or the
	 * call has to fail. */
	if (!user && !(flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
		address = mmap(NULL, size ? size : 4096, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (address == MAP_FAILED)
		return -errno;
	*ret_bo = (struct raw_bo){ .address = address, .size = size };
	return raw_alloc_at(process, gpu_id, flags, ret_bo);
}

int raw_free(struct raw_process *process, const struct raw_bo *bo)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = bo->handle };

	return raw_ioctl(process->kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

int raw_map(struct raw_process *process, const struct raw_bo *bo, uint32_t gpu_id)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = bo->handle,
		.device_ids_array_ptr = (uintptr_t)&gpu_id,
		.n_devices = 1,
	};

	return raw_ioctl(process->kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args);
}

int raw_unmap(struct raw_process *process, const struct raw_bo *bo, uint32_t gpu_id)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args args = {
		.handle = bo->handle,
		.device_ids_array_ptr = (uintptr_t)&gpu_id,
		.n_devices = 1,
	};

	return raw_ioctl(process->kfd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &args);
}

int raw_mmap(int fd, const struct raw_bo *bo)
{
	void *at = mmap(bo->address, bo->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			(off_t)bo->mmap_offset);

	return at == MAP_FAILED ? -errno : 0;
}

int raw_alloc_mapped(struct raw_process *process, int gpu, uint32_t flags, size_t size,
		     struct raw_bo *ret_bo)
{
	uint32_t gpu_id = process->gpu[gpu].gpu_id;
	int ret;

	ret = raw_alloc(process, gpu_id, flags, size, NULL, ret_bo);
	if (ret == 0)
		ret = raw_map(process, ret_bo, gpu_id);
	if (ret == 0)
		ret = raw_mmap(process->render[gpu], ret_bo);
	return ret;
}

/* KFD 1.12; older headers lack it. */
struct raw_export_args {
	uint64_t handle;
	uint32_t flags, dmabuf_fd;
};

int raw_export(struct raw_process *process, const struct raw_bo *bo, int *ret_fd)
{
	struct raw_export_args args = { .handle = bo->handle, .flags = O_CLOEXEC };
	int ret = raw_ioctl(process->kfd, AMDKFD_IOWR(0x24, struct raw_export_args), &args);

	*ret_fd = (int)args.dmabuf_fd;
	return ret;
}

int raw_import(struct raw_process *process, uint32_t gpu_id, int fd, void *address,
	       struct raw_bo *ret_bo)
{
	struct kfd_ioctl_import_dmabuf_args args = {
		.va_addr = (uintptr_t)address,
		.gpu_id = gpu_id,
		.dmabuf_fd = (uint32_t)fd,
	};
	int ret = raw_ioctl(process->kfd, AMDKFD_IOC_IMPORT_DMABUF, &args);

	*ret_bo = (struct raw_bo){
		.handle = args.handle,
		.address = address,
		.size = (size_t)lseek(fd, 0, SEEK_END),
	};
	return ret;
}

/* kfd_ioctl.h of ROCm; the kernel's header does not have them. */
struct raw_ipc_export_args {
	uint64_t handle;
	uint32_t share_handle[4];
	uint32_t gpu_id, flags;
};

struct raw_ipc_import_args {
	uint64_t handle, va_addr, mmap_offset;
	uint32_t share_handle[4];
	uint32_t gpu_id, flags;
};

int raw_ipc_export(struct raw_process *process, const struct raw_bo *bo, uint32_t *ret_handle)
{
	struct raw_ipc_export_args args = { .handle = bo->handle,
					    .gpu_id = (uint32_t)(bo->handle >> 32),
					    .flags = RAW_IPC_FLAGS };
	int ret = raw_ioctl(process->kfd, AMDKFD_IOWR(0x81, struct raw_ipc_export_args), &args);

	memcpy(ret_handle, args.share_handle, sizeof(args.share_handle));
	return ret;
}

int raw_ipc_import(struct raw_process *process, uint32_t gpu_id, const uint32_t *handle,
		   struct raw_bo *bo)
{
	struct raw_ipc_import_args args = { .va_addr = (uintptr_t)bo->address, .gpu_id = gpu_id };
	int ret;

	memcpy(args.share_handle, handle, sizeof(args.share_handle));
	ret = raw_ioctl(process->kfd, AMDKFD_IOWR(0x80, struct raw_ipc_import_args), &args);
	bo->handle = args.handle;
	bo->mmap_offset = args.mmap_offset;
	return ret || args.flags == RAW_IPC_FLAGS ? ret : -EPROTO;
}

int raw_svm(struct raw_process *process, void *start, uint64_t size, uint32_t op,
	    struct kfd_ioctl_svm_attribute *attrs, uint32_t count)
{
	/* The command's size grows with the attributes. */
	unsigned long command = AMDKFD_IOC_SVM + ((unsigned long)count * 8 << _IOC_SIZESHIFT);
	char room[sizeof(struct kfd_ioctl_svm_args) + 8 * sizeof(*attrs)];
	struct kfd_ioctl_svm_args *args = (struct kfd_ioctl_svm_args *)room;
	int ret;

	*args = (struct kfd_ioctl_svm_args){
		.start_addr = (uintptr_t)start,
		.size = size,
		.op = op,
		.nattr = count,
	};
	memcpy(args->attrs, attrs, count * sizeof(*attrs));
	ret = raw_ioctl(process->kfd, command, args);
	memcpy(attrs, args->attrs, count * sizeof(*attrs));
	return ret;
}

int raw_map_doorbell(struct raw_process *process, uint64_t offset, struct raw_queue *queue)
{
	char *slice = mmap(NULL, RAW_DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			   process->kfd, (off_t)(offset & ~(uint64_t)(RAW_DOORBELL_BYTES - 1)));

	if (slice == MAP_FAILED)
		return -errno;
	queue->slice = slice;
	queue->doorbell = (volatile uint64_t *)(slice + (offset & (RAW_DOORBELL_BYTES - 1)));
	return 0;
}

int raw_create_queue(struct raw_process *process, int gpu, struct raw_queue *queue)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = RING_BYTES,
		.gpu_id = process->gpu[gpu].gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	int ret;

	memset(queue, 0, sizeof(*queue));
	ret = raw_alloc_mapped(process, gpu, RAW_GTT, RING_BYTES, &queue->ring);
	if (ret == 0)
		ret = raw_alloc_mapped(process, gpu, RAW_GTT, 4096, &queue->pointers);
	if (ret < 0)
		return ret;
	memset(queue->pointers.address, 0, 4096);
	queue->read = (volatile uint64_t *)queue->pointers.address;
	queue->write = queue->read + 8;
	args.ring_base_address = (uintptr_t)queue->ring.address;
	args.read_pointer_address = (uintptr_t)queue->read;
	args.write_pointer_address = (uintptr_t)queue->write;
	ret = raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (ret < 0)
		return ret;
	queue->id = args.queue_id;
	queue->doorbell_offset = args.doorbell_offset;
	return raw_map_doorbell(process, args.doorbell_offset, queue);
}

static void queue_put(struct raw_queue *queue, const uint32_t *packet, unsigned int count)
{
	volatile uint32_t *ring = (volatile uint32_t *)queue->ring.address;
	uint64_t at = queue->written / 4 % (RING_BYTES / 4);

	for (; at + count > RING_BYTES / 4; at = queue->written / 4 % (RING_BYTES / 4)) {
		ring[at] = 0;
		queue->written += 4;
	}
	for (unsigned int i = 0; i < count; i++)
		ring[at + i] = packet[i];
	queue->written += count * 4;
}

void raw_queue_add(struct raw_queue *queue, volatile uint64_t *at, uint64_t value)
{
	uint64_t address = (uintptr_t)at;
	const uint32_t packet[] = { 10u | 0x2fu << 25,
				    (uint32_t)address,
				    (uint32_t)(address >> 32),
				    (uint32_t)value,
				    (uint32_t)(value >> 32),
				    0,
				    0,
				    0 };

	queue_put(queue, packet, 8);
}

void raw_queue_copy(struct raw_queue *queue, const void *from, void *to, uint32_t bytes)
{
	uint64_t source = (uintptr_t)from, target = (uintptr_t)to;
	const uint32_t packet[] = { 1u,
				    bytes - 1,
				    0,
				    (uint32_t)source,
				    (uint32_t)(source >> 32),
				    (uint32_t)target,
				    (uint32_t)(target >> 32) };

	queue_put(queue, packet, 7);
}

void raw_queue_ring(struct raw_queue *queue)
{
	__atomic_store_n(queue->write, queue->written, __ATOMIC_SEQ_CST);
	__atomic_store_n(queue->doorbell, queue->written, __ATOMIC_SEQ_CST);
}

int raw_queue_wait(struct raw_queue *queue)
{
	for (int i = 0; i < WAIT_STEPS; i++) {
		if (__atomic_load_n(queue->read, __ATOMIC_SEQ_CST) == queue->written)
			return 0;
		(void)usleep(STEP_US);
	}
	return -ETIME;
}

int raw_queue_rests(struct raw_queue *queue)
{
	uint64_t begin = __atomic_load_n(queue->read, __ATOMIC_SEQ_CST);

	for (int i = 0; i < REST_STEPS; i++) {
		(void)usleep(STEP_US);
		if (__atomic_load_n(queue->read, __ATOMIC_SEQ_CST) != begin)
			return -EBUSY;
	}
	return 0;
}
