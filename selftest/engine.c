// SPDX-License-Identifier: GPL-2.0-only
/* Queues copies faster than the engine does them, and waits for the last one. */
#include "engine.h"

#include <time.h>

#include "memory.h"

/* All copies are in the ring before the engine sees the first one, and take longer than a step of
 * sdma_wait(). */
#define BLOCK_BYTES ((size_t)16 << 20)
#define COPIES      32
#define MIB         1048576.0

static double seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The first copy is not timed: the driver may have to move the memory. */
static int measure(struct sdma_queue *queue, const struct memory *from, const struct memory *to,
		   double *ret_mib_s)
{
	const char *source = from->gpu_address;
	char *target = to->gpu_address;
	int ret = sdma_copy_now(queue, source, target, BLOCK_BYTES);
	double begin = seconds();
	struct sdma_mark mark;

	if (ret < 0)
		return ret;
	for (int i = 0; i < COPIES; i++) {
		for (size_t done = 0; done < BLOCK_BYTES; done += SDMA_COPY_MAX)
			sdma_copy(queue, source + done, target + done, SDMA_COPY_MAX);
	}
	mark = sdma_submit(queue);
	ret = sdma_wait(queue, &mark);
	*ret_mib_s = COPIES * (double)BLOCK_BYTES / MIB / (seconds() - begin);
	return ret;
}

int engine_measure(struct report *report, const struct gpu *gpu, struct sdma_queue *queue)
{
	const struct gpus only = memory_only(gpu);
	struct memory vram = { 0 }, gtt = { 0 };
	double out = 0, in = 0;
	int ret = memory_alloc(report, MEMORY_VRAM_HIDDEN, BLOCK_BYTES, gpu, &only, &vram);

	if (ret == 0)
		ret = memory_alloc(report, MEMORY_GTT, BLOCK_BYTES, gpu, &only, &gtt);
	if (ret == 0)
		ret = measure(queue, &vram, &gtt, &out);
	if (ret == 0)
		ret = measure(queue, &gtt, &vram, &in);
	if (ret == 0)
		report_line(report, "engine alone: %.0f MiB/s from VRAM, %.0f MiB/s to it", out,
			    in);
	memory_free(report, &gtt);
	memory_free(report, &vram);
	return ret;
}
