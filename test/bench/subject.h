/* SPDX-License-Identifier: GPL-2.0-only */
/* The measured data: the BOs of a process on the simulated GPUs, as jobs of the content unit. KFD's
 * ioctls make them, and CHECKPOINT returns their dma-bufs, as in a dump. */
#ifndef TEST_BENCH_SUBJECT_H
#define TEST_BENCH_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "content/content.h"
#include "content/kfd_jobs.h"
#include "kernel/kfd.h"
#include "workload.h"

struct subject {
	struct workload workload;
	struct client *client;
	struct task task;
	struct kfd_state state;
	struct kfd_jobs work;
	/* One for each GPU that has contents; image_fd is -1. */
	struct content_job *jobs;
	size_t num_jobs;
	uint64_t bytes;
	/* Each BO is so many times in its job, because a process may lack descriptors for all BOs.
	 */
	size_t repeats;
};

/* @words: see workload.h. With @most_bytes, sizes are scaled down until all contents together have
 * at most that; they are never scaled up. -errno after a line; subject_done() may follow. */
int subject_make(const char *words, uint64_t most_bytes, struct subject *ret_subject);
void subject_done(struct subject *subject);

#endif
