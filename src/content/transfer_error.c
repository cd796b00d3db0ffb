// SPDX-License-Identifier: GPL-2.0-only
/* Keeps the first error of several threads. */
#include "content/transfer_error.h"

void transfer_error_set(struct transfer_error *error, const struct content_job *job, int ret,
			const char *action, size_t bo)
{
	(void)pthread_mutex_lock(&error->lock);
	if (!error->ret) {
		error->ret = ret;
		error->job = job;
		error->action = action;
		error->bo = bo;
	}
	__atomic_store_n(&error->stop, true, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&error->lock);
}

bool transfer_error_is_set(const struct transfer_error *error)
{
	return __atomic_load_n(&error->stop, __ATOMIC_RELAXED);
}
