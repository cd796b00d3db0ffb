/* SPDX-License-Identifier: GPL-2.0-only */
/* Very many small buffers of one GPU, whose contents must survive. They are made without libhsakmt,
 * which has a mapping for each, and CRIU takes its time for each mapping; and written and read by
 * the engine, hundreds at a time. */
#ifndef CLIENT_MANY_H
#define CLIENT_MANY_H

#include <stdint.h>

#include "gpus.h"
#include "report.h"
#include "sdma.h"

/* Of each of them. */
#define MANY_BYTES 4096

struct many;

/* @kfd_fd is libhsakmt's and stays open; @queue belongs to @gpu; @instance tells processes
 * of a tree apart. */
int many_new(struct report *report, int kfd_fd, const struct gpu *gpu, struct sdma_queue *queue,
	     unsigned int count, uint32_t instance, struct many **ret_many);
/* Accepts NULL, as many_verify() does. */
void many_free(struct many *many);

/* Compares every byte; the first difference is reported. */
int many_verify(struct many *many);

#endif
