/* SPDX-License-Identifier: GPL-2.0-only */
/* The model's compiler environment in the kernel: integer types, errno values, string functions,
 * locks and wait queues. sim_os.h declares the other functions. */
#ifndef SIM_ENV_H
#define SIM_ENV_H

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/wait.h>

#define SIM_ENOTSUPP    524 /* the kernel's own ENOTSUPP */
#define SIM_ERESTARTSYS 512
#define SIM_PRIu64      "llu"
#define SIM_PRIx64      "llx"

struct sim_lock {
	struct mutex mutex;
};

struct sim_wait {
	wait_queue_head_t head;
};

static inline void sim_lock_init(struct sim_lock *lock)
{
	mutex_init(&lock->mutex);
}

static inline void sim_lock(struct sim_lock *lock)
{
	mutex_lock(&lock->mutex);
}

static inline void sim_unlock(struct sim_lock *lock)
{
	mutex_unlock(&lock->mutex);
}

static inline void sim_wait_init(struct sim_wait *wait)
{
	init_waitqueue_head(&wait->head);
}

#endif
