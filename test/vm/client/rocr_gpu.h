/* SPDX-License-Identifier: GPL-2.0-only */
/* What the ROCr client does on one GPU: buffers, locked and shared memory of the process, copies
 * that never rest, a copy that waits over the dump with a thread that sleeps until it is done, and
 * kernels. A function that returns false has said why. */
#ifndef CLIENT_ROCR_GPU_H
#define CLIENT_ROCR_GPU_H

#include <pthread.h>

#include "rocr.h"
#include "rocr_host.h"
#include "rocr_kernels.h"
#include "rocr_vmem.h"

/* Copies from two buffers of VRAM in turn, one after another. */
struct rocr_loop {
	pthread_t thread;
	uint32_t *vram[2], *to;
	struct rocr_copier copier;
	bool stop, wrong;
};

struct rocr_gpu {
	const struct rocr *rocr;
	const struct rocr_place *place;
	unsigned int index, generation;
	uint32_t *from, *to;   /* of the CPU's pool */
	uint32_t *vram, *kept; /* the copy that waits goes to the first */
	struct rocr_host locked, shared;
	hsa_signal_t go,
		copied; /* the copy begins when the first is 0; the second is 0 when it is done */
	struct rocr_copier copier;
	hsa_signal_t done;
	pthread_t sleeper;
	struct rocr_loop loop;
	struct rocr_kernels *kernels; /* or NULL */
	struct rocr_vmem *vmem;       /* or NULL */
};

struct rocr_work {
	const char *code_object; /* NULL: no kernels */
	bool vmem;               /* of the virtual memory API */
};

/* Starts what never rests. */
bool rocr_gpu_open(struct rocr_gpu *gpu, const struct rocr *rocr, unsigned int index,
		   const struct rocr_work *work);

/* Starts what a dump is to interrupt. */
bool rocr_gpu_begin(struct rocr_gpu *gpu);

/* Lets go on what rocr_gpu_begin() has started, waits for its end, and compares everything. */
bool rocr_gpu_verify(struct rocr_gpu *gpu);

bool rocr_gpu_close(struct rocr_gpu *gpu);

#endif
