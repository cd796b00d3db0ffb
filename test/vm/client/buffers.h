/* SPDX-License-Identifier: GPL-2.0-only */
/* The buffers whose contents must survive: allocated once, filled with a pattern each, compared on
 * request, and moved on to a new generation of contents. */
#ifndef CLIENT_BUFFERS_H
#define CLIENT_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpus.h"
#include "report.h"
#include "sdma.h"

struct buffers;

enum buffers_sizes {
	BUFFERS_SMALL,
	BUFFERS_MEDIUM,
	BUFFERS_FULL,
};

/* -EINVAL: no such name. */
int buffers_parse_sizes(const char *name, enum buffers_sizes *ret_sizes);

/* Allocates the buffers of every GPU and fills them; what the CPU cannot reach goes through
 * @queues[i], which belongs to the i-th of @gpus. @instance tells processes of a tree apart. */
int buffers_new(struct report *report, const struct gpus *gpus, struct sdma_queue *queues,
		enum buffers_sizes sizes, uint32_t instance, struct buffers **ret_buffers);
void buffers_free(struct buffers *buffers);

/* Compares everything with what it must be; the first difference is reported. */
int buffers_verify(struct buffers *buffers);

/* Gives every third buffer new contents, a different third each time. */
int buffers_mutate(struct buffers *buffers);

/* Makes a page in the middle of a visible VRAM buffer read-only, which splits its mapping in three.
 * The buffer is not mutated any more. */
int buffers_split_mapping(struct buffers *buffers);

uint64_t buffers_bytes(const struct buffers *buffers);
unsigned int buffers_count(const struct buffers *buffers);

#endif
