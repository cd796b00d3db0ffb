/* SPDX-License-Identifier: GPL-2.0-only */
/* The checksums of contents, as docs/image-format.md describes them. */
#ifndef AMDGPU_PLUGIN_CONTENT_CHECKSUM_H
#define AMDGPU_PLUGIN_CONTENT_CHECKSUM_H

#include <stdint.h>

struct content_job;

/* The name of this kind of checksum in images. */
#define CHECKSUM_NAME "xxh3-pages"

/* The sum, modulo 2^64, of the 64-bit XXH3 of each page, with the page's index in its BO as the
 * seed. The sums of parts of a BO therefore add up to the checksum of the BO, in any order.
 * @pages: @size bytes of contents, whole pages, from page number @first of the BO on. */
uint64_t checksum_pages(const void *pages, uint64_t size, uint64_t first);
/* XXH3 of the BOs' checksums, one after the other as little-endian words. -ENOMEM. */
int checksum_of_job(const struct content_job *job, uint64_t *ret_checksum);

#endif
