/* SPDX-License-Identifier: GPL-2.0-only */
/* Jobs side by side. */
#ifndef TEST_FAULTS_POOL_H
#define TEST_FAULTS_POOL_H

#include <stddef.h>

struct pool {
	size_t count; /* of jobs */
	/* Called by one of the workers, which have numbers from 0 up. */
	void (*work)(void *argument, size_t job, unsigned int worker);
	/* Called by who called, when a job is done, one after the other in their order. */
	void (*take)(void *argument, size_t job);
	void *argument;
};

/* Returns after all jobs are done and taken. */
void pool_run(const struct pool *pool, unsigned int num_workers);

#endif
