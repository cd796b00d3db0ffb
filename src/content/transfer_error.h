/* SPDX-License-Identifier: GPL-2.0-only */
/* The first error of all transfers of a run. It ends them all. */
#ifndef AMDGPU_PLUGIN_CONTENT_TRANSFER_ERROR_H
#define AMDGPU_PLUGIN_CONTENT_TRANSFER_ERROR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "content/content.h"

struct transfer_error {
	pthread_mutex_t lock;
	int ret;
	/* The GPU of the error, or NULL if it concerns none. */
	const struct content_job *job;
	const char *action;
	size_t bo;
	/* Read without the lock. */
	bool stop;
};

/* Records the error if it is the first, and stops all transfers. Any thread may call this. */
void transfer_error_set(struct transfer_error *error, const struct content_job *job, int ret,
			const char *action, size_t bo);
bool transfer_error_is_set(const struct transfer_error *error);

#endif
