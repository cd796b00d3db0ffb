// SPDX-License-Identifier: GPL-2.0-only
/* Computes the checksums of contents. transfer.c chooses the bytes, and kfd_jobs.c knows the
 * checksums of an image. */
#include "content/checksum.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

/* XXH3 with the widest vectors that the processor has. */
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "amdgpu_plugin_util.h"

#define PAGE CONTENT_ALIGNMENT

uint64_t checksum_pages(const void *pages, uint64_t size, uint64_t first)
{
	const char *bytes = pages;
	uint64_t sum = 0;

	for (uint64_t at = 0; at < size; at += PAGE)
		sum += XXH3_64bits_withSeed(bytes + at, PAGE, first + at / PAGE);
	return sum;
}

int checksum_of_job(const struct content_job *job, uint64_t *ret_checksum)
{
	_cleanup_free_ uint64_t *sums = calloc(job->num_bos + 1, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < job->num_bos; i++)
		sums[i] = htole64(job->bos[i].checksum);
	*ret_checksum = XXH3_64bits(sums, job->num_bos * sizeof(*sums));
	return 0;
}

int checksum_init(struct checksums *checksums, enum content_checksum kind, size_t num_bos)
{
	*checksums = (struct checksums){ .kind = kind };
	if (kind == CONTENT_NO_CHECKSUM)
		return 0;
	checksums->sums = calloc(num_bos + 1, sizeof(*checksums->sums));
	if (!checksums->sums)
		return -ENOMEM;
	if (kind != CONTENT_XXH3)
		return 0;
	checksums->state = XXH3_createState();
	if (!checksums->state)
		return -ENOMEM;
	(void)XXH3_64bits_reset(checksums->state);
	return 0;
}

void checksum_done(struct checksums *checksums)
{
	(void)XXH3_freeState(checksums->state);
	free(checksums->sums);
	*checksums = (struct checksums){ 0 };
}

bool checksum_needs_order(const struct checksums *checksums)
{
	return checksums->kind == CONTENT_XXH3;
}

static void add_in_order(struct checksums *checksums, const struct content_bo *bo, size_t index,
			 uint64_t offset, const void *memory, uint64_t size)
{
	(void)XXH3_64bits_update(checksums->state, memory, size);
	if (offset + size < bo->size)
		return;
	checksums->sums[index] = XXH3_64bits_digest(checksums->state);
	(void)XXH3_64bits_reset(checksums->state);
}

void checksum_add(struct checksums *checksums, const struct content_bo *bo, size_t index,
		  uint64_t offset, const void *memory, uint64_t size)
{
	switch (checksums->kind) {
	case CONTENT_XXH3:
		add_in_order(checksums, bo, index, offset, memory, size);
		break;
	case CONTENT_XXH3_PAGES:
		(void)__atomic_fetch_add(&checksums->sums[index],
					 checksum_pages(memory, size, offset / PAGE),
					 __ATOMIC_RELAXED);
		break;
	case CONTENT_NO_CHECKSUM:
		break;
	}
}

uint64_t checksum_get(const struct checksums *checksums, const struct content_bo *bo, size_t index)
{
	/* Contents of no bytes were never added. */
	if (!bo->size && checksums->kind == CONTENT_XXH3)
		return XXH3_64bits("", 0);
	return checksums->sums[index];
}
