/* SPDX-License-Identifier: GPL-2.0-only */
/* The images of an older dump (option base), whose chunks a new image may share: the pages files
 * that have sums and have not changed since. Lookups may run in several threads. */
#ifndef AMDGPU_PLUGIN_CONTENT_BASE_H
#define AMDGPU_PLUGIN_CONTENT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/sums.h"

struct base;

/* A chunk in a pages file, whose descriptor is the base's. */
struct base_place {
	int fd;
	uint64_t offset;
};

/* Why a pages file of the base is not used. */
enum base_flaw {
	BASE_DAMAGED,
	BASE_MISSING,
	BASE_CHANGED,
	BASE_BEING_WRITTEN,
	BASE_FLAWS,
};

/* Reads the sums in @directory, which is borrowed. Without a directory (-1), and for one without
 * sums, the base is empty. -ENOMEM, or the error of a call that lists the directory. */
int base_open(int directory, struct base **ret_base);
/* Accepts NULL. */
void base_free(struct base *base);
/* The bytes of all chunks with a sum. */
uint64_t base_size(const struct base *base);
/* How many pages files are left out for this. */
size_t base_count_flaws(const struct base *base, enum base_flaw flaw);

/* Where a chunk with this sum is. Prefers @wanted; its fd may be -1 if there is no such place. */
bool base_find(const struct base *base, const struct sums_sum *sum, const struct base_place *wanted,
	       struct base_place *ret_place);
/* The beginning of the pages file with this name, or fd -1. */
struct base_place base_find_file(const struct base *base, const char *name);
/* Whether no file has changed since base_open(). */
bool base_is_unchanged(const struct base *base);

#endif
