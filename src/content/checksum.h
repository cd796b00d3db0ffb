/* SPDX-License-Identifier: GPL-2.0-only */
/* 64-bit XXH3 of BOs whose bytes come by and by, in order. The same that "xxhsum -H3" prints for a
 * file with those bytes. */
#ifndef AMDGPU_PLUGIN_CONTENT_CHECKSUM_H
#define AMDGPU_PLUGIN_CONTENT_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of all bytes at once. */
uint64_t checksum_of(const void *bytes, size_t size);

struct checksum;

/* -ENOMEM. */
int checksum_new(struct checksum **ret_checksum);
void checksum_free(struct checksum *checksum);
void checksum_add(struct checksum *checksum, const void *bytes, size_t size);
/* Of all bytes added since it was new, or since it was last taken. */
uint64_t checksum_take(struct checksum *checksum);

#endif
