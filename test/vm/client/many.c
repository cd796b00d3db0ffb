/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps very many small buffers: makes, fills, compares and frees them. Buffers of all kinds and
 * sizes stand elsewhere. */
#include "many.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"
#include "pattern.h"
#include "raw_kfd.h"

/* Their copies fit into the ring of a transfer queue. */
#define BATCH 256u
/* Above the ids of other buffers. */
#define FIRST_ID (1u << 24)
#define VRAM     (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | RAW_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE)

struct many {
	struct report *report;
	struct raw_process process; /* libhsakmt's file */
	uint32_t gpu_id;
	struct sdma_queue *queue;
	struct memory staging;
	/* They lie one after the other, in address space that nothing else is put into. */
	char *region;
	size_t region_bytes;
	struct raw_bo *bos;
	unsigned int count; /* of those that there are */
	uint32_t instance;
};

static char *address_of(const struct many *many, unsigned int i)
{
	return many->region + (size_t)i * MANY_BYTES;
}

static struct pattern pattern_of(const struct many *many, unsigned int i)
{
	return (struct pattern){ .key = pattern_key(many->instance, FIRST_ID + i, 0) };
}

static char *staging_of(const struct many *many, unsigned int i)
{
	return (char *)many->staging.address + (size_t)(i % BATCH) * MANY_BYTES;
}

/* The end of the batch that begins with @first. */
static unsigned int batch_end(const struct many *many, unsigned int first)
{
	return many->count - first < BATCH ? many->count : first + BATCH;
}

static int batch_run(struct many *many)
{
	struct sdma_mark mark = sdma_submit(many->queue);

	return sdma_wait(many->queue, &mark);
}

static int batch_fill(struct many *many, unsigned int first)
{
	for (unsigned int i = first; i < batch_end(many, first); i++) {
		struct pattern pattern = pattern_of(many, i);

		pattern_fill(&pattern, 0, staging_of(many, i), MANY_BYTES);
		sdma_copy(many->queue, staging_of(many, i), address_of(many, i), MANY_BYTES);
	}
	return batch_run(many);
}

static int check(struct many *many, unsigned int i)
{
	struct pattern pattern = pattern_of(many, i);
	struct pattern_mismatch wrong;
	int ret = pattern_check(&pattern, 0, staging_of(many, i), MANY_BYTES, &wrong);

	if (ret < 0)
		return report_fail(many->report, ret,
				   "buffer %u of many, at %p, differs at 0x%" PRIx64
				   ": expected %016" PRIx64 ", got %016" PRIx64,
				   i, (void *)address_of(many, i), wrong.offset_bytes,
				   wrong.expected, wrong.got);
	return 0;
}

static int batch_verify(struct many *many, unsigned int first)
{
	int ret;

	for (unsigned int i = first; i < batch_end(many, first); i++)
		sdma_copy(many->queue, address_of(many, i), staging_of(many, i), MANY_BYTES);
	ret = batch_run(many);
	for (unsigned int i = first; ret == 0 && i < batch_end(many, first); i++)
		ret = check(many, i);
	return ret;
}

static int buffer_make(struct many *many, unsigned int i)
{
	struct raw_bo *bo = &many->bos[i];
	int ret;

	*bo = (struct raw_bo){ .address = address_of(many, i), .size = MANY_BYTES };
	ret = raw_alloc_at(&many->process, many->gpu_id, VRAM, bo);
	many->count += ret == 0;
	if (ret == 0)
		ret = raw_map(&many->process, bo, many->gpu_id);
	return ret < 0 ? report_fail(many->report, ret, "no buffer %u of many: %s", i,
				     strerror(-ret))
		       : 0;
}

static void buffer_free(struct many *many, const struct raw_bo *bo)
{
	int ret = raw_unmap(&many->process, bo, many->gpu_id);

	if (ret == 0)
		ret = raw_free(&many->process, bo);
	if (ret < 0)
		report_fail(many->report, ret, "cannot free one of many buffers: %s",
			    strerror(-ret));
}

static int many_make(struct many *many, const struct gpu *gpu, unsigned int count)
{
	struct gpus only = memory_only(gpu);
	int ret = raw_list_gpus(many->process.gpu, &many->process.gpus, NULL);

	if (ret < 0)
		return report_fail(many->report, ret, "GPU %d has no id", gpu->index);
	many->gpu_id = many->process.gpu[gpu->index].gpu_id;
	many->region = mmap(NULL, many->region_bytes, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (many->region == MAP_FAILED)
		return report_fail(many->report, -errno, "no address space for %u buffers", count);
	ret = memory_alloc(many->report, MEMORY_GTT, (size_t)BATCH * MANY_BYTES, gpu, &only,
			   &many->staging);
	for (unsigned int i = 0; ret == 0 && i < count; i++)
		ret = buffer_make(many, i);
	for (unsigned int i = 0; ret == 0 && i < count; i += BATCH)
		ret = batch_fill(many, i);
	return ret;
}

int many_new(struct report *report, int kfd_fd, const struct gpu *gpu, struct sdma_queue *queue,
	     unsigned int count, uint32_t instance, struct many **ret_many)
{
	struct many *many = calloc(1, sizeof(*many));
	int ret;

	if (many)
		many->bos = calloc(count, sizeof(*many->bos));
	if (!many || !many->bos) {
		free(many);
		return report_fail(report, -ENOMEM, "no memory for a list of %u buffers", count);
	}
	many->report = report;
	many->process.kfd = kfd_fd;
	many->queue = queue;
	many->instance = instance;
	many->region = MAP_FAILED;
	many->region_bytes = (size_t)count * MANY_BYTES;
	ret = many_make(many, gpu, count);
	if (ret < 0) {
		many_free(many);
		return ret;
	}
	*ret_many = many;
	return 0;
}

void many_free(struct many *many)
{
	if (!many)
		return;
	for (unsigned int i = 0; i < many->count; i++)
		buffer_free(many, &many->bos[i]);
	memory_free(many->report, &many->staging);
	if (many->region != MAP_FAILED)
		munmap(many->region, many->region_bytes);
	free(many->bos);
	free(many);
}

int many_verify(struct many *many)
{
	int ret = 0;

	for (unsigned int i = 0; many && ret == 0 && i < many->count; i += BATCH)
		ret = batch_verify(many, i);
	return ret;
}
