/* SPDX-License-Identifier: GPL-2.0-only */
/* A compute queue (AQL) on each GPU, without ROCr. At each dump its kernel "march" of
 * test/data/kernels is in the middle of a loop, with values in registers and LDS that nothing else
 * has. */
#ifndef SELFTEST_COMPUTE_H
#define SELFTEST_COMPUTE_H

#include "gpus.h"
#include "report.h"

struct compute;

/* Makes the queue, and starts the kernel: it is in its loop when this returns. march_wanted() says
 * when the loop ends. */
int compute_new(struct report *report, const struct gpu *gpu, struct compute **ret_compute);
/* @compute may be NULL here and below. */
void compute_free(struct compute *compute);

/* Ends the loop, or waits for its end, and compares the results. They must be those of a kernel
 * that has begun once. */
int compute_verify(struct compute *compute);
/* Starts the kernel again after compute_verify(). */
int compute_begin(struct compute *compute);

#endif
