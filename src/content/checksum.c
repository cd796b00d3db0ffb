// SPDX-License-Identifier: GPL-2.0-only
/* Computes the checksums of contents. transfer.c adds up those of the parts of a BO, and kfd_jobs.c
 * reads the checksums of an image. */
#include "content/checksum.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "content/xxh3.h"

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
