/* SPDX-License-Identifier: GPL-2.0-only */
/* The fake kernel with a copy engine. A test program includes this header once. */
#ifndef TEST_UNIT_GPU_TASK_H
#define TEST_UNIT_GPU_TASK_H

#include "fake_gpu.h"
#include "fake_kernel.h"

static inline bool any_process_runs(void)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (kernel.processes[i].num_devices && !kernel.processes[i].paused)
			return true;
	}
	return false;
}

static inline int fake_gpu_begin(void **state)
{
	memset(&gpu, 0, sizeof(gpu));
	gpu.lowest_dmabuf = INT32_MAX;
	gpu.any_process_runs = any_process_runs;
	return fake_kernel_begin(state);
}

static inline int fake_gpu_end(void **state)
{
	int ret = fake_kernel_end(state);

	if (gpu.objects)
		printf("%d engines and BOs are not closed\n", gpu.objects);
	if (gpu.violations)
		printf("%u violations of the engine's rules\n", gpu.violations);
	return gpu.objects || gpu.violations ? -1 : ret;
}

/* A dma-buf is a file in memory. The driver rounds the size up to pages. */
static inline int new_dmabuf(uint32_t number, uint64_t size)
{
	int fd = memfd_create("bo", MFD_CLOEXEC);

	(void)number;
	assert_int_equal(ftruncate(fd, (off_t)((size + 4095) / 4096 * 4096)), 0);
	return fd;
}

#endif
