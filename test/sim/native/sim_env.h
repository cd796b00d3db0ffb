/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the model needs of its compiler environment, for user space: integer types, errno
 * values, string functions, locks and condition variables. Functions that do something
 * are declared in sim_os.h. */
#ifndef SIM_ENV_H
#define SIM_ENV_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef unsigned long long u64;
typedef long long s64;

#define SIM_ENOTSUPP      524
#define SIM_PRIx64        "llx"
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define min(a, b)                              \
	({                                     \
		__typeof__(a) min_a = (a);     \
		__typeof__(b) min_b = (b);     \
		min_a < min_b ? min_a : min_b; \
	})
#define max(a, b)                              \
	({                                     \
		__typeof__(a) max_a = (a);     \
		__typeof__(b) max_b = (b);     \
		max_a > max_b ? max_a : max_b; \
	})

struct sim_lock {
	pthread_mutex_t mutex;
};

struct sim_wait {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint64_t
		wakes; /* the number of wakes, so that none is missed between a check and a sleep */
};

static inline void sim_lock_init(struct sim_lock *lock)
{
	(void)pthread_mutex_init(&lock->mutex, NULL);
}

static inline void sim_lock(struct sim_lock *lock)
{
	(void)pthread_mutex_lock(&lock->mutex);
}

static inline void sim_unlock(struct sim_lock *lock)
{
	(void)pthread_mutex_unlock(&lock->mutex);
}

static inline void sim_wait_init(struct sim_wait *wait)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&wait->mutex, NULL);
	(void)pthread_cond_init(&wait->cond, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	wait->wakes = 0;
}

#endif
