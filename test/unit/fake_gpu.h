/* SPDX-License-Identifier: GPL-2.0-only */
/* The copy engine of the fake kernel, for tests whose dma-bufs are those of the fake kernel, or
 * whose process has to be without further threads. Tests of contents have the simulator
 * (drm_calls.h). A test can make each call fail. */
#ifndef TEST_UNIT_FAKE_GPU_H
#define TEST_UNIT_FAKE_GPU_H

#include <stdatomic.h>

#include "fake_kernel.h"

extern struct fake_gpu {
	/* A copy while a process of the fake kernel runs is a violation. */
	bool wants_all_paused;
	/* The driver keeps all rings for user queues. */
	bool has_no_rings;
	/* The number of the call that fails, from 1, or 0 if none does. */
	unsigned int fail_at;
	int fail_errno;
	atomic_uint calls;
	/* Engines and BOs that are open. */
	atomic_int objects;
	atomic_uint submissions;
	atomic_uint violations;
	/* The lowest descriptor of an imported dma-buf, and the number of descriptors that an
	 * exec() would keep. */
	atomic_int lowest_dmabuf;
	atomic_uint inherited_dmabufs;
} gpu;

int fake_gpu_begin(void **state);
int fake_gpu_end(void **state);
/* A dma-buf is a file in memory. The driver rounds the size up to pages. */
int new_dmabuf(uint32_t number, uint64_t size);

#endif
