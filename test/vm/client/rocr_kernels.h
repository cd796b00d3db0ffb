/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernels of the ROCr client on one GPU, of test/data/kernels: one is in the middle of its loop
 * at a dump, another waits behind a barrier in a queue of its own. The first writes its results to
 * locked memory of the process, the second computes in memory with SVM attributes. */
#ifndef CLIENT_ROCR_KERNELS_H
#define CLIENT_ROCR_KERNELS_H

#include "rocr.h"

struct rocr_kernels;

/* Loads the code object @path, and makes the queues. */
bool rocr_kernels_open(const struct rocr *rocr, unsigned int gpu, const char *path,
		       struct rocr_kernels **ret_kernels);

/* Starts both; the first is in its loop then, the second runs when @go is 0. */
bool rocr_kernels_begin(struct rocr_kernels *kernels, hsa_signal_t go);

/* Ends the loop. The results must be those of a kernel that has begun once, and has gone on. */
bool rocr_kernels_verify_loop(struct rocr_kernels *kernels);

/* To be called after @go was set to 0. */
bool rocr_kernels_verify_behind(struct rocr_kernels *kernels);

/* Frees @kernels, too. */
bool rocr_kernels_close(struct rocr_kernels *kernels);

#endif
