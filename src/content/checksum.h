/* SPDX-License-Identifier: GPL-2.0-only */
/* The checksums of a GPU's BOs while their contents are transferred. */
#ifndef AMDGPU_PLUGIN_CONTENT_CHECKSUM_H
#define AMDGPU_PLUGIN_CONTENT_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"

/* All zero: no checksums. */
struct checksums {
	enum content_checksum kind;
	/* One per BO; under way until all its contents were added. */
	uint64_t *sums;
	/* CONTENT_XXH3: the state of the current BO. */
	void *state;
};

/* -ENOMEM; call checksum_done() even then. */
int checksum_init(struct checksums *checksums, enum content_checksum kind, size_t num_bos);
void checksum_done(struct checksums *checksums);

/* Whether the contents must be added in order, and by one thread at a time. Else they can be added
 * in any order and by several threads at the same time, in whole pages. */
bool checksum_needs_order(const struct checksums *checksums);
/* Adds @size bytes at @offset of BO number @index, which is @bo. Without checksums it does nothing.
 */
void checksum_add(struct checksums *checksums, const struct content_bo *bo, size_t index,
		  uint64_t offset, const void *memory, uint64_t size);
/* The checksum of BO number @index, which is @bo, after all its contents. */
uint64_t checksum_get(const struct checksums *checksums, const struct content_bo *bo, size_t index);

#endif
