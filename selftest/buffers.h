/* SPDX-License-Identifier: GPL-2.0-only */
/* The buffers whose contents must survive: allocated once, filled with a pattern each, compared on
 * request, and moved on to a new generation of contents. */
#ifndef SELFTEST_BUFFERS_H
#define SELFTEST_BUFFERS_H

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

struct buffers_options {
	enum buffers_sizes sizes;
	/* Also user memory in a memfd and in a file that was removed. */
	bool files;
	/* About so much more VRAM on each GPU. */
	uint64_t bulk_bytes;
	/* Tells processes of a tree apart. */
	uint32_t instance;
};

/* Allocates the buffers of every GPU and fills them; what the CPU cannot reach goes through
 * @queues[i], which belongs to the i-th of @gpus. */
int buffers_new(struct report *report, const struct gpus *gpus, struct sdma_queue *queues,
		const struct buffers_options *options, struct buffers **ret_buffers);
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
