/* SPDX-License-Identifier: GPL-2.0-only */
/* The contents of one GPU's BOs on their way to or from an image; the content unit's
 * header has the picture. */
#ifndef AMDGPU_PLUGIN_CONTENT_TRANSFER_H
#define AMDGPU_PLUGIN_CONTENT_TRANSFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"

/* The first thing that failed in any of the transfers that go on at once; ends them all. */
struct transfer_error {
	pthread_mutex_t lock;
	int ret;
	const struct content_job *job;
	const char *action;
	size_t bo;
	/* Read without the lock. */
	bool stop;
};

/* Notes an error, if it is the first. May be called by any thread. */
void transfer_fail(struct transfer_error *error, const struct content_job *job, int ret,
		   const char *action, size_t bo);

/* What transfers that go on at once have in common. */
struct transfer_plan {
	/* Else they load. */
	bool save;
	const struct content_settings *settings;
	struct transfer_error *error;
};

struct transfer_progress {
	/* Of the image. */
	uint64_t done_bytes;
	uint64_t total_bytes;
	/* Time that its threads spent on copies, and on storage, all together. */
	double copy_s;
	double storage_s;
	unsigned int num_slots;
	size_t slot_size;
};

struct transfer;

/* Borrows @plan and @job, whose BOs have @size bytes together, and starts nothing. -ENOMEM. */
int transfer_new(const struct transfer_plan *plan, struct content_job *job, uint64_t size,
		 struct transfer **ret_transfer);
void transfer_free(struct transfer *transfer);
/* Does all of it, in this thread and in those it starts, which have ended when it returns. The
 * result is in the plan's error. */
void transfer_run(struct transfer *transfer);
/* May be called by another thread meanwhile. */
void transfer_get_progress(struct transfer *transfer, struct transfer_progress *ret_progress);

#endif
