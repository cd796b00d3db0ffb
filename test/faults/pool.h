/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs jobs in parallel. */
#ifndef TEST_FAULTS_POOL_H
#define TEST_FAULTS_POOL_H

#include <stddef.h>

struct pool {
	size_t count; /* the number of jobs */
	/* A worker calls this. Workers have numbers from 0 up. */
	void (*work)(void *argument, size_t job, unsigned int worker);
	/* The calling thread calls this for each job that has ended, one after the other in their
	 * order. */
	void (*take)(void *argument, size_t job);
	void *argument;
};

/* Returns after all jobs have ended and were taken. */
void pool_run(const struct pool *pool, unsigned int num_workers);

#endif
