/* SPDX-License-Identifier: GPL-2.0-only */
/* Divides the staging memory of a GPU into slots. sdma_open() makes the memory. */
#ifndef AMDGPU_PLUGIN_CONTENT_SLOTS_H
#define AMDGPU_PLUGIN_CONTENT_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "content/content.h"

/* The contents of a slot have a page before them and a page after them. In the image, contents
 * start IMAGE_HEADER_SIZE bytes after a page. With the margins, contents of whole pages lie in
 * whole pages of the slot, and storage still accesses whole pages of the file. */
#define SLOT_MARGIN CONTENT_ALIGNMENT

struct slots {
	unsigned int count;
	/* As many as slots, or half as many, with two slots each. */
	unsigned int threads;
	/* Bytes of memory of a slot, and of the contents in it. */
	size_t memory;
	size_t size;
};

/* At most @staging_bytes of memory, but at least one slot of one page, and no more than contents of
 * @size bytes fill. The processors are for @num_transfers transfers, which are not 0. */
struct slots slots_choose(uint64_t staging_bytes, uint64_t size, size_t num_transfers);

/* Makes the contents of the slots multiples of @unit bytes, in the same memory, if it has room for
 * several of them. */
void slots_align(struct slots *slots, uint64_t unit);

/* For a load from a file that is in memory: a thread reads to one of its slots while the engine
 * copies from the other. At least two slots of one page. */
struct slots slots_choose_pairs(uint64_t staging_bytes, uint64_t size, size_t num_transfers);

/* For a copy to kept memory in parts of @size bytes (content/pool.h): as many as keep the engine
 * busy, because the threads do nothing else. Their contents are multiples of @unit bytes, if they
 * have room for one. */
struct slots slots_of_parts(size_t size, uint64_t unit);

#endif
