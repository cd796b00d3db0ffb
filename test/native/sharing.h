/* SPDX-License-Identifier: GPL-2.0-only */
/* Two KFD processes, both played by the test, and the buffers that they share. The machine's first
 * two GPUs are partitions of one device. */
#ifndef TEST_NATIVE_SHARING_H
#define TEST_NATIVE_SHARING_H

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amdgpu_drm.h>
#include <drm.h>

#include "raw_kfd.h"
#include "sim_test.h"

#define SIZE 65536u

/* Numbers GPUs by their position. */
enum { FIRST, PARTITION, OTHER };

/* The two processes of the test. */
struct pair {
	struct raw_process owner, importer;
};

static inline int begin_default(void **state)
{
	sim_write("kernel", "default");
	return begin(state);
}

static inline struct pair open_pair(void)
{
	struct pair pair;

	assert_int_equal(raw_open_acquired(&pair.owner), 0);
	sim_write("task", "1");
	assert_int_equal(raw_open_acquired(&pair.importer), 0);
	sim_write("task", "0");
	assert_true(pair.owner.gpus > OTHER);
	return pair;
}

static inline void close_process(struct raw_process *process)
{
	for (int i = 0; i < process->gpus; i++)
		(void)close(process->render[i]);
	(void)close(process->kfd);
}

static inline void close_pair(struct pair *pair)
{
	close_process(&pair->owner);
	close_process(&pair->importer);
	sim_write("process_exit", "1");
}

static inline struct raw_bo alloc(struct raw_process *process, int gpu, uint32_t flags)
{
	struct raw_bo bo;

	assert_int_equal(raw_alloc(process, process->gpu[gpu].gpu_id, flags, SIZE, NULL, &bo), 0);
	return bo;
}

static inline int export(struct raw_process *process, const struct raw_bo *bo)
{
	int fd;

	assert_int_equal(raw_export(process, bo, &fd), 0);
	return fd;
}

/* Maps at a separate address. */
static inline struct raw_bo import(struct raw_process *process, int gpu, int fd)
{
	void *address = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct raw_bo bo;

	assert_int_equal(raw_import(process, process->gpu[gpu].gpu_id, fd, address, &bo), 0);
	return bo;
}

static inline void release(struct raw_process *process, struct raw_bo *bo)
{
	assert_int_equal(raw_free(process, bo), 0);
	(void)munmap(bo->address, bo->size);
}

static inline uint32_t prime_import(int render, int fd)
{
	struct drm_prime_handle args = { .fd = fd };

	assert_int_equal(raw_ioctl(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args), 0);
	return args.handle;
}

static inline ino_t inode(int fd)
{
	struct stat stat;

	assert_int_equal(fstat(fd, &stat), 0);
	return stat.st_ino;
}

/* The record that CHECKPOINT returns for the buffer at @address, or the error. The caller owns the
 * dma-buf. */
static inline int checkpoint(struct raw_process *process, const void *address,
		      struct kfd_criu_bo_bucket *ret_bucket)
{
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct kfd_ioctl_criu_args unpause = { .op = KFD_CRIU_OP_UNPAUSE };
	struct kfd_criu_device_bucket devices[RAW_GPUS];
	struct kfd_criu_bo_bucket buckets[16];
	static uint8_t priv[16384];
	int ret;

	assert_int_equal(raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &args), 0);
	assert_true(args.num_bos <= 16 && args.priv_data_size <= sizeof(priv));
	args.op = KFD_CRIU_OP_CHECKPOINT;
	args.devices = (uintptr_t)devices;
	args.bos = (uintptr_t)buckets;
	args.priv_data = (uintptr_t)priv;
	ret = raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &args);
	assert_int_equal(raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &unpause), 0);
	for (uint32_t i = 0; ret == 0 && i < args.num_bos; i++) {
		if (buckets[i].addr == (uintptr_t)address)
			*ret_bucket = buckets[i];
		else if (buckets[i].dmabuf_fd != KFD_INVALID_FD)
			(void)close((int)buckets[i].dmabuf_fd);
	}
	return ret;
}

static inline struct kfd_criu_bo_bucket saved(struct raw_process *process, const struct raw_bo *bo)
{
	struct kfd_criu_bo_bucket bucket = { 0 };

	assert_int_equal(checkpoint(process, bo->address, &bucket), 0);
	assert_int_equal(bucket.addr, (uintptr_t)bo->address);
	return bucket;
}

static inline uint64_t mmap_offset(int render, uint32_t handle)
{
	union drm_amdgpu_gem_mmap args = { .in = { .handle = handle } };

	assert_int_equal(raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_MMAP, &args), 0);
	return args.out.addr_ptr;
}

#endif
