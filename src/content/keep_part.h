/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a keep (content/keep.h), for save.c. Each has room for one range. */
#ifndef AMDGPU_PLUGIN_CONTENT_KEEP_PART_H
#define AMDGPU_PLUGIN_CONTENT_KEEP_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/keep.h"
#include "content/ranges.h"
#include "content/sdma.h"

struct keep_gpu;

struct keep_part {
	char *memory;
	/* The memory of the part for its GPU. */
	struct sdma_bo bo;
	struct keep_gpu *gpu;
	/* The contents that wait to be written, and the transfer that they are of. */
	struct range range;
	void *owner;
	void (*write)(struct keep_part *part);
	struct keep_part *next;
};

/* The GPU of the keep that has parts, or NULL. */
struct keep_gpu *keep_find_gpu(const struct keep *keep, uint32_t minor);
/* Bytes of memory of a part. */
size_t keep_part_size(const struct keep *keep);

/* Waits for a part of @gpu without contents. NULL: @is_wanted() has become false, or keep_lose()
 * has been called. keep_wake() makes all that wait ask again. */
struct keep_part *keep_take(struct keep *keep, struct keep_gpu *gpu,
			    bool (*is_wanted)(void *argument), void *argument);
void keep_wake(struct keep *keep);
/* Gives a part back, to which no copy is in progress. */
void keep_give(struct keep *keep, struct keep_part *part);
/* A copy to a part has failed with @ret in @action, and may still be in progress. No copy can begin
 * any more. */
void keep_lose(struct keep *keep, int ret, const char *action);
/* The error of the first keep_lose(), or 0. It may be of another GPU or process. */
int keep_lost_by(struct keep *keep, const char **ret_action);
/* The contents of a GPU are copied to parts between these. */
void keep_begin_copy(struct keep *keep);
void keep_end_copy(struct keep *keep);
/* A thread of the keep calls @write, and then gives the part back. Parts are written in the order
 * of these calls, several at the same time, as soon as no GPU is copied, or a copy has had to wait
 * for a part. */
void keep_write(struct keep *keep, struct keep_part *part, void (*write)(struct keep_part *part));

#endif
