/* SPDX-License-Identifier: GPL-2.0-only */
/* What is measured: the BOs of a process on the simulated GPUs, as jobs of the content unit. Made
 * with KFD's ioctls, and their dma-bufs come from CHECKPOINT, as in a dump. */
#ifndef TEST_BENCH_SUBJECT_H
#define TEST_BENCH_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "content/content.h"
#include "kernel/kfd.h"
#include "workload.h"

struct subject {
	struct workload workload;
	struct client *client;
	struct task task;
	struct kfd_state state;
	struct kfd_jobs work;
	/* One a GPU that has contents; image_fd is -1. */
	struct content_job *jobs;
	size_t num_jobs;
	uint64_t bytes;
	/* Of each BO of the jobs: where it is in the workload; as many rows as there are jobs. */
	size_t **origins;
	/* Each BO stands that many times in its job: a process may not have descriptors enough for
	 * all of them. */
	size_t repeats;
};

/* @words: see workload.h; with @most_bytes, sizes are scaled down until all contents together have
 * no more than that, and nothing is scaled up. -errno after a line; subject_done() may follow. */
int subject_make(const char *words, uint64_t most_bytes, struct subject *ret_subject);
void subject_done(struct subject *subject);

/* Only of subjects that the workload has filled and that repeat nothing. verify:
 * -EIO after a line. */
int subject_scribble(const struct subject *subject);
int subject_verify(const struct subject *subject);

#endif
