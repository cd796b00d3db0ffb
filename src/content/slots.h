/* SPDX-License-Identifier: GPL-2.0-only */
/* The staging memory of a GPU, and its division into slots.
 *
 * It is memory of this process for the copy engine: private and anonymous, because the kernel
 * refuses other memory for amdgpu_create_bo_from_user_mem(). It is aligned for huge pages, and a
 * forked child does not have it: after a fork() that copies a page, the GPU would write to the copy
 * of the child. */
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

/* The next size that consists of whole pages of the kernel, or of huge pages, so that the last
 * bytes are in a huge page, too. amdgpu_gem_userptr_ioctl() refuses parts of the kernel's pages,
 * which have 64 KiB on some machines. */
size_t slots_round_up(size_t size);
/* Bytes for the slots of a GPU whose user has not chosen them. They grow with the memory that is
 * free in this process's cgroup. */
uint64_t slots_choose_bytes(void);
/* NULL: there is no memory. munmap() gives it back. @size is a result of slots_round_up(). */
char *slots_map(size_t size);

/* At most @staging_bytes of memory, but at least one slot of one page, and no more than contents of
 * @size bytes fill. The processors are for @num_transfers transfers, which are not 0. The contents
 * of a slot are a multiple of @unit bytes, if the memory has room for several of them. */
struct slots slots_choose(uint64_t staging_bytes, uint64_t size, size_t num_transfers,
			  uint64_t unit);

/* For a load from a file that is in memory: a thread reads to one of its slots while the engine
 * copies from the other. At least two slots of one page. */
struct slots slots_choose_pairs(uint64_t staging_bytes, uint64_t size, size_t num_transfers);

/* For a copy to kept memory in parts of @size bytes (content/pool.h): as many as keep the engine
 * busy, because the threads do nothing else. Their contents are multiples of @unit bytes, if they
 * have room for one. */
struct slots slots_of_parts(size_t size, uint64_t unit);

#endif
