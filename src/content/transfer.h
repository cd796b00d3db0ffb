/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies the contents of one GPU's BOs to or from an image. content/content.h describes the
 * steps; content_save() and content_load() run one transfer per GPU. */
#ifndef AMDGPU_PLUGIN_CONTENT_TRANSFER_H
#define AMDGPU_PLUGIN_CONTENT_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"
#include "content/transfer_error.h"

/* What the transfers of a run share. */
struct transfer_plan {
	/* A save, or a load if false. */
	bool save;
	const struct content_settings *settings;
	struct transfer_error *error;
	/* The transfers that share the processors. */
	size_t num_transfers;
};

struct transfer_progress {
	/* Bytes of contents. */
	uint64_t done_bytes;
	uint64_t total_bytes;
	/* Seconds that all threads together spent on copies, and on storage. */
	double copy_s;
	double storage_s;
	unsigned int num_slots;
	size_t slot_size;
};

struct transfer;

/* Borrows @plan and @job, whose BOs have @size bytes together. Starts no thread. -ENOMEM. */
int transfer_new(const struct transfer_plan *plan, struct content_job *job, uint64_t size,
		 struct transfer **ret_transfer);
void transfer_free(struct transfer *transfer);
/* Copies all ranges in this thread and in threads that it starts and joins. Then the BOs are not
 * needed any more. An error is in the error of the plan. */
void transfer_copy(struct transfer *transfer);
/* Waits for ranges that are kept and not written yet, and ends the image. Call it once after
 * transfer_copy(). */
void transfer_finish(struct transfer *transfer);
/* Another thread may call this between the two, and during each. */
void transfer_get_progress(struct transfer *transfer, struct transfer_progress *ret_progress);

#endif
