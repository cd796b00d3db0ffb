// SPDX-License-Identifier: GPL-2.0-only
/* Shares a chunk by FICLONERANGE. It looks first where the file of the same name has it, or behind
 * the chunk that was found last. */
#include "content/chunks.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"

int chunks_init(struct chunks *chunks, const struct base *base, const char *name, uint64_t size)
{
	const size_t count = size / SUMS_CHUNK;
	struct sums_sum *list = calloc(count + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	*chunks = (struct chunks){
		.base = base,
		.same = base_find_file(base, name),
		.sums = { .list = list, .count = count },
	};
	return 0;
}

void chunks_done(struct chunks *chunks)
{
	free(chunks->sums.list);
	*chunks = (struct chunks){ 0 };
}

bool chunks_look(struct chunks *chunks, const void *chunk, uint64_t offset,
		 struct base_place *place)
{
	struct base_place wanted = *place;
	struct sums_sum *sum = &chunks->sums.list[offset / SUMS_CHUNK];

	*sum = sums_of_chunk(chunk);
	if (__atomic_load_n(&chunks->error, __ATOMIC_RELAXED))
		return false;
	if (wanted.fd >= 0)
		wanted.offset += SUMS_CHUNK;
	else
		wanted = (struct base_place){ chunks->same.fd, offset };
	return base_find(chunks->base, sum, &wanted, place);
}

int chunks_share(struct chunks *chunks, int fd, uint64_t offset, uint64_t size,
		 const struct base_place *place)
{
	struct file_clone_range range = {
		.src_fd = place->fd,
		.src_offset = place->offset,
		.src_length = size,
		.dest_offset = offset,
	};
	int ret = xioctl(fd, FICLONERANGE, &range);

	if (!ret)
		(void)__atomic_fetch_add(&chunks->shared_bytes, size, __ATOMIC_RELAXED);
	else if (ret != -ENOSPC)
		__atomic_store_n(&chunks->error, -ret, __ATOMIC_RELAXED);
	return ret;
}
