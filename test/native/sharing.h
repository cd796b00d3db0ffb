/* SPDX-License-Identifier: GPL-2.0-only */
/* Two KFD processes, both played by the test, and the buffers that they share. The machine's first
 * two GPUs are partitions of one device. */
#ifndef TEST_NATIVE_SHARING_H
#define TEST_NATIVE_SHARING_H

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

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

#endif
