/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds out which of two ways of an operation is the faster one on this machine. The first
 * operations alternate batches of both ways, and the rest use the faster one. */
#ifndef AMDGPU_PLUGIN_STORAGE_TRIAL_H
#define AMDGPU_PLUGIN_STORAGE_TRIAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define TRIAL_WAYS 2

/* Several threads may use a trial at the same time. */
struct trial {
	/* If false, all operations use the first way. */
	bool useful;
	/* Operations in one way before the other way has its turn. */
	unsigned int operations;
	pthread_mutex_t lock;
	/* Operations of all threads that have begun, and what ended. Under the lock. */
	unsigned int begun;
	double seconds[TRIAL_WAYS];
	uint64_t bytes[TRIAL_WAYS];
};

/* @operations: more than run at the same time, if those in one way delay those in the other. */
void trial_init(struct trial *trial, bool useful, unsigned int operations);
void trial_done(struct trial *trial);

/* The way of the next operation, 0 or 1. Operations on few bytes use the first way. */
unsigned int trial_choose(struct trial *trial, uint64_t size);
/* The operation has taken @seconds in that way. Few bytes do not count. */
void trial_note(struct trial *trial, unsigned int way, double seconds, uint64_t size);

#endif
