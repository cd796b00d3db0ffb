/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a pool (content/pool.h), for save.c. Each has room for one range. */
#ifndef AMDGPU_PLUGIN_CONTENT_POOL_PART_H
#define AMDGPU_PLUGIN_CONTENT_POOL_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/pool.h"
#include "content/transfer.h"

struct pool_gpu;

struct pool_part {
	char *memory;
	/* The memory of the part for its GPU. */
	struct sdma_bo bo;
	struct pool_gpu *gpu;
	/* The contents that wait to be written, and the transfer that they are of. */
	struct range range;
	void *owner;
	void (*write)(struct pool_part *part);
	struct pool_part *next;
};

/* The GPU of the pool that has parts, or NULL. */
struct pool_gpu *pool_find_gpu(const struct pool *pool, uint32_t minor);
/* Bytes of memory of a part. */
size_t pool_part_size(const struct pool *pool);

/* Waits for a part of @gpu without contents. NULL: @is_wanted() has become false, or pool_lose()
 * has been called. pool_wake() makes all that wait ask again. */
struct pool_part *pool_take(struct pool *pool, struct pool_gpu *gpu,
			    bool (*is_wanted)(void *argument), void *argument);
void pool_wake(struct pool *pool);
/* Gives a part back, to which no copy is in progress. */
void pool_give(struct pool *pool, struct pool_part *part);
/* A copy to a part has failed with @ret in @action, and may still be in progress. No copy can begin
 * any more. */
void pool_lose(struct pool *pool, int ret, const char *action);
/* The error of the first pool_lose(), or 0. It may be of another GPU or process. */
int pool_lost_by(struct pool *pool, const char **ret_action);
/* The contents of a GPU are copied to parts between these. */
void pool_begin_copy(struct pool *pool);
void pool_end_copy(struct pool *pool);
/* A thread of the pool calls @write, and then gives the part back. Parts are written in the order
 * of these calls, several at the same time, as soon as no GPU is copied, or a copy has had to wait
 * for a part. */
void pool_write(struct pool *pool, struct pool_part *part, void (*write)(struct pool_part *part));

#endif
