// SPDX-License-Identifier: GPL-2.0-only
/* Reads and judges how many references a dma-buf has. shared_bos.c knows the BOs of the dump. */
#include "dump/dmabuf_holders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "amdgpu_plugin_util.h"

int dmabuf_holders_count(int fd, uint64_t *ret_count)
{
	_cleanup_fclose_ FILE *file = NULL;
	uint64_t count = 0;
	char text[96];

	(void)snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
	file = fopen(text, "re");
	if (!file)
		return -errno;
	while (!count && fgets(text, sizeof(text), file)) {
		/* NOLINTNEXTLINE(cert-err34-c): the kernel's number */
		(void)sscanf(text, "count: %" SCNu64, &count);
	}
	if (ferror(file))
		return -EIO;
	*ret_count = count;
	return 0;
}

static uint64_t count_certain(const struct dmabuf_holders *holders)
{
	return holders->bos + holders->descriptors + holders->other_devices + holders->files;
}

bool dmabuf_holders_are_counted(const struct dmabuf_holders *holders)
{
	return holders->references >= count_certain(holders);
}

bool dmabuf_holders_are_known(const struct dmabuf_holders *holders)
{
	/* The object and KFD's own file hold the dma-buf together, or both do not. */
	const uint64_t pairs = 2 * (1 + holders->other_devices);
	const uint64_t certain = count_certain(holders);
	uint64_t rest;

	if (holders->references <= certain)
		return true;
	rest = holders->references - certain;
	if (rest > pairs + holders->attachments)
		return false;
	return holders->attachments || holders->files || rest % 2 == 0;
}
