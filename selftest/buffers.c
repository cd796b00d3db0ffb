/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the list of pattern buffers of all GPUs: makes, fills, compares and frees them. How memory
 * is obtained and how the engine copies stands elsewhere. */
#include "buffers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"
#include "pattern.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
/* What goes through the engine in one piece. */
#define STAGING_BYTES   MIB(1)
#define BOTH_WAYS_BYTES MIB(16)
#define BULK_BYTES      MIB(64)

struct recipe {
	enum buffers_sizes from; /* which --sizes have it: this one and larger ones */
	enum memory_kind kind;
	unsigned int count;
	size_t size_bytes;
	bool sparse;
	bool everywhere; /* mapped to all GPUs, not only to its own */
};

/* Per GPU: small 6 MiB in 43 buffers, medium 129 MiB in 253, full 801 MiB in 256. Half of a
 * machine's memory is enough for each of them: the contents are in memory only once. */
static const struct recipe recipes[] = {
	{ BUFFERS_SMALL, MEMORY_VRAM_VISIBLE, 10, KIB(4), false, false },
	{ BUFFERS_SMALL, MEMORY_VRAM_HIDDEN, 10, KIB(4), false, false },
	{ BUFFERS_SMALL, MEMORY_GTT, 5, KIB(4), false, true },
	{ BUFFERS_SMALL, MEMORY_USERPTR, 5, KIB(4), false, true },
	{ BUFFERS_SMALL, MEMORY_VRAM_VISIBLE, 1, KIB(12), false, true },
	{ BUFFERS_SMALL, MEMORY_VRAM_VISIBLE, 1, KIB(64), false, false },
	{ BUFFERS_SMALL, MEMORY_VRAM_VISIBLE, 1, MIB(1), false, false },
	{ BUFFERS_SMALL, MEMORY_VRAM_HIDDEN, 1, KIB(20), false, false },
	{ BUFFERS_SMALL, MEMORY_VRAM_HIDDEN, 1, KIB(260), false, false },
	{ BUFFERS_SMALL, MEMORY_VRAM_HIDDEN, 1, MIB(1), true, false },
	{ BUFFERS_SMALL, MEMORY_VRAM_HIDDEN, 1, MIB(1), false, true },
	{ BUFFERS_SMALL, MEMORY_GTT, 1, KIB(28), false, false },
	{ BUFFERS_SMALL, MEMORY_GTT, 1, KIB(516), false, true },
	{ BUFFERS_SMALL, MEMORY_USERPTR, 1, KIB(36), false, true },
	{ BUFFERS_SMALL, MEMORY_USERPTR, 1, MIB(1), false, false },
	{ BUFFERS_SMALL, MEMORY_REGISTERED, 1, KIB(4), false, false },
	{ BUFFERS_SMALL, MEMORY_REGISTERED, 1, KIB(520), false, true },
	{ BUFFERS_SMALL, MEMORY_MEMFD, 1, KIB(68), false, true },
	{ BUFFERS_SMALL, MEMORY_UNLINKED, 1, KIB(68), false, true },
	{ BUFFERS_MEDIUM, MEMORY_VRAM_HIDDEN, 120, KIB(4), false, false },
	{ BUFFERS_MEDIUM, MEMORY_VRAM_VISIBLE, 80, KIB(8), false, false },
	{ BUFFERS_MEDIUM, MEMORY_VRAM_VISIBLE, 1, MIB(16), false, false },
	{ BUFFERS_MEDIUM, MEMORY_VRAM_HIDDEN, 1, MIB(8) + KIB(4), false, false },
	{ BUFFERS_MEDIUM, MEMORY_VRAM_HIDDEN, 1, MIB(64), true, false },
	{ BUFFERS_MEDIUM, MEMORY_GTT, 1, MIB(16) + KIB(12), false, true },
	{ BUFFERS_MEDIUM, MEMORY_GTT, 5, MIB(2), false, false },
	{ BUFFERS_MEDIUM, MEMORY_USERPTR, 1, MIB(8), false, true },
	{ BUFFERS_FULL, MEMORY_VRAM_VISIBLE, 1, MIB(128) + KIB(4), true, false },
	{ BUFFERS_FULL, MEMORY_VRAM_HIDDEN, 1, MIB(512), true, false },
	{ BUFFERS_FULL, MEMORY_GTT, 1, MIB(32), false, false },
};

struct buffer {
	struct memory memory;
	uint32_t id;
	uint32_t generation;
	bool sparse;
	bool split;
	int gpu; /* position in the list of GPUs */
};

struct buffers {
	struct report *report;
	const struct gpus *gpus;
	struct sdma_queue *queues;
	struct memory staging[GPUS_MAX];
	struct buffer *list;
	unsigned int count;
	uint64_t bytes;
	uint32_t instance;
	unsigned int mutations;
};

int buffers_parse_sizes(const char *name, enum buffers_sizes *ret_sizes)
{
	static const char *const names[] = { "small", "medium", "full" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*ret_sizes = (enum buffers_sizes)i;
			return 0;
		}
	}
	return -EINVAL;
}

static struct pattern buffer_pattern(const struct buffers *buffers, const struct buffer *buffer)
{
	return (struct pattern){
		.key = pattern_key(buffers->instance, buffer->id, buffer->generation),
		.sparse = buffer->sparse,
	};
}

/* The staging memory has contents while it is idle, too. No buffer has its id. */
static struct pattern staging_pattern(const struct buffers *buffers, int gpu_index)
{
	return (struct pattern){
		.key = pattern_key(buffers->instance, UINT32_MAX - 1 - (uint32_t)gpu_index,
				   buffers->mutations),
	};
}

static void staging_fill(struct buffers *buffers)
{
	for (int i = 0; i < buffers->gpus->count; i++) {
		struct pattern pattern = staging_pattern(buffers, i);

		pattern_fill(&pattern, 0, buffers->staging[i].address, STAGING_BYTES);
	}
}

static int staging_verify(const struct buffers *buffers)
{
	for (int i = 0; i < buffers->gpus->count; i++) {
		struct pattern pattern = staging_pattern(buffers, i);
		struct pattern_mismatch wrong;
		int ret;

		ret = pattern_check(&pattern, 0, buffers->staging[i].address, STAGING_BYTES,
				    &wrong);
		if (ret < 0)
			return report_fail(buffers->report, ret,
					   "GPU %d: the staging memory differs at 0x%" PRIx64,
					   buffers->gpus->list[i].index, wrong.offset_bytes);
	}
	return 0;
}

static size_t piece_bytes(const struct buffer *buffer, size_t done)
{
	size_t left = buffer->memory.size_bytes - done;

	return left < STAGING_BYTES ? left : STAGING_BYTES;
}

static int buffer_fill_by_engine(struct buffers *buffers, struct buffer *buffer)
{
	const struct memory *staging = &buffers->staging[buffer->gpu];
	struct pattern pattern = buffer_pattern(buffers, buffer);
	char *to = buffer->memory.gpu_address;
	size_t done = 0;

	while (done < buffer->memory.size_bytes) {
		size_t n = piece_bytes(buffer, done);
		int ret;

		pattern_fill(&pattern, done, staging->address, n);
		ret = sdma_copy_now(&buffers->queues[buffer->gpu], staging->address, to + done, n);
		if (ret < 0)
			return ret;
		done += n;
	}
	return 0;
}

/* What both can write is written by the CPU and by the engine in turn. */
static int buffer_fill(struct buffers *buffers, struct buffer *buffer)
{
	struct pattern pattern = buffer_pattern(buffers, buffer);

	if (!memory_has_cpu_access(buffer->memory.kind) || buffer->generation % 2)
		return buffer_fill_by_engine(buffers, buffer);
	pattern_fill(&pattern, 0, buffer->memory.address, buffer->memory.size_bytes);
	return 0;
}

static int buffer_check(struct buffers *buffers, struct buffer *buffer, size_t done, const void *at,
			size_t n, const char *who)
{
	struct pattern pattern = buffer_pattern(buffers, buffer);
	struct pattern_mismatch wrong;
	int ret;

	ret = pattern_check(&pattern, done, at, n, &wrong);
	if (ret < 0)
		return report_fail(
			buffers->report, ret,
			"GPU %d: buffer %u (%s, %zu bytes at %p), read by %s, differs at "
			"0x%" PRIx64 ": expected %016" PRIx64 ", got %016" PRIx64,
			buffers->gpus->list[buffer->gpu].index, buffer->id,
			memory_kind_name(buffer->memory.kind), buffer->memory.size_bytes,
			buffer->memory.address, who, wrong.offset_bytes, wrong.expected, wrong.got);
	return 0;
}

static int buffer_verify_by_engine(struct buffers *buffers, struct buffer *buffer)
{
	const struct memory *staging = &buffers->staging[buffer->gpu];
	const char *from = buffer->memory.gpu_address;
	size_t done = 0;

	while (done < buffer->memory.size_bytes) {
		size_t n = piece_bytes(buffer, done);
		int ret;

		ret = sdma_copy_now(&buffers->queues[buffer->gpu], from + done, staging->address,
				    n);
		if (ret == 0)
			ret = buffer_check(buffers, buffer, done, staging->address, n,
					   "the engine");
		if (ret < 0)
			return ret;
		done += n;
	}
	return 0;
}

/* CPU and engine reach a buffer on different ways, and both must lead to the same memory. Of the
 * largest buffers one way has to do. */
static int buffer_verify(struct buffers *buffers, struct buffer *buffer)
{
	bool by_cpu = memory_has_cpu_access(buffer->memory.kind);
	bool by_engine = !by_cpu || buffer->memory.size_bytes <= BOTH_WAYS_BYTES;
	int ret = 0;

	if (by_cpu)
		ret = buffer_check(buffers, buffer, 0, buffer->memory.address,
				   buffer->memory.size_bytes, "the CPU");
	if (ret == 0 && by_engine)
		ret = buffer_verify_by_engine(buffers, buffer);
	return ret;
}

static int buffers_add(struct buffers *buffers, const struct recipe *recipe, int gpu_index)
{
	const struct gpu *gpu = &buffers->gpus->list[gpu_index];
	struct gpus only = memory_only(gpu);
	const struct gpus *mapped = recipe->everywhere ? buffers->gpus : &only;
	struct buffer *buffer = &buffers->list[buffers->count];
	enum memory_kind kind = recipe->kind;
	int ret;

	/* A GPU with a small BAR has no VRAM that the CPU sees. */
	if (kind == MEMORY_VRAM_VISIBLE && !gpu->vram_visible)
		kind = MEMORY_VRAM_HIDDEN;
	*buffer = (struct buffer){
		.id = buffers->count,
		.gpu = gpu_index,
		.sparse = recipe->sparse,
	};
	ret = memory_alloc(buffers->report, kind, recipe->size_bytes, gpu, mapped, &buffer->memory);
	if (ret < 0)
		return ret;
	buffers->count++;
	buffers->bytes += recipe->size_bytes;
	return buffer_fill(buffers, buffer);
}

static bool is_wanted(const struct recipe *recipe, const struct buffers_options *options)
{
	bool is_file = recipe->kind == MEMORY_MEMFD || recipe->kind == MEMORY_UNLINKED;

	return recipe->from <= options->sizes && (options->files || !is_file);
}

static uint64_t count_bulk(const struct buffers_options *options)
{
	return (options->bulk_bytes + BULK_BYTES - 1) / BULK_BYTES;
}

static int buffers_add_bulk(struct buffers *buffers, const struct buffers_options *options,
			    int gpu_index)
{
	const struct recipe bulk = { .kind = MEMORY_VRAM_HIDDEN, .size_bytes = BULK_BYTES };
	int ret = 0;

	for (uint64_t i = 0; ret == 0 && i < count_bulk(options); i++)
		ret = buffers_add(buffers, &bulk, gpu_index);
	return ret;
}

static int buffers_add_gpu(struct buffers *buffers, const struct buffers_options *options,
			   int gpu_index)
{
	struct gpus only = memory_only(&buffers->gpus->list[gpu_index]);
	int ret;

	ret = memory_alloc(buffers->report, MEMORY_GTT, STAGING_BYTES, &only.list[0], &only,
			   &buffers->staging[gpu_index]);
	for (size_t i = 0; ret == 0 && i < sizeof(recipes) / sizeof(recipes[0]); i++) {
		if (!is_wanted(&recipes[i], options))
			continue;
		for (unsigned int n = 0; ret == 0 && n < recipes[i].count; n++)
			ret = buffers_add(buffers, &recipes[i], gpu_index);
	}
	return ret ? ret : buffers_add_bulk(buffers, options, gpu_index);
}

int buffers_new(struct report *report, const struct gpus *gpus, struct sdma_queue *queues,
		const struct buffers_options *options, struct buffers **ret_buffers)
{
	struct buffers *buffers = calloc(1, sizeof(*buffers));
	size_t most = count_bulk(options);

	for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
		most += recipes[i].count;
	if (buffers)
		buffers->list = calloc(most * (size_t)gpus->count, sizeof(*buffers->list));
	if (!buffers || !buffers->list) {
		free(buffers);
		return report_fail(report, -ENOMEM, "no memory for the list of buffers");
	}
	buffers->report = report;
	buffers->gpus = gpus;
	buffers->queues = queues;
	buffers->instance = options->instance;
	for (int i = 0; i < gpus->count; i++) {
		int ret = buffers_add_gpu(buffers, options, i);

		if (ret < 0) {
			buffers_free(buffers);
			return ret;
		}
	}
	staging_fill(buffers);
	*ret_buffers = buffers;
	return 0;
}

void buffers_free(struct buffers *buffers)
{
	if (!buffers)
		return;
	for (unsigned int i = 0; i < buffers->count; i++)
		memory_free(buffers->report, &buffers->list[i].memory);
	for (int i = 0; i < buffers->gpus->count; i++)
		memory_free(buffers->report, &buffers->staging[i]);
	free(buffers->list);
	free(buffers);
}

int buffers_verify(struct buffers *buffers)
{
	int ret = staging_verify(buffers);

	if (ret < 0)
		return ret;
	for (unsigned int i = 0; i < buffers->count; i++) {
		ret = buffer_verify(buffers, &buffers->list[i]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int buffers_mutate(struct buffers *buffers)
{
	unsigned int which = buffers->mutations++ % 3;

	for (unsigned int i = which; i < buffers->count; i += 3) {
		struct buffer *buffer = &buffers->list[i];
		int ret;

		if (buffer->split)
			continue;
		buffer->generation++;
		ret = buffer_fill(buffers, buffer);
		if (ret < 0)
			return ret;
	}
	staging_fill(buffers);
	return 0;
}

int buffers_split_mapping(struct buffers *buffers)
{
	for (unsigned int i = 0; i < buffers->count; i++) {
		struct buffer *buffer = &buffers->list[i];
		char *middle = (char *)buffer->memory.address + KIB(4);

		if (buffer->memory.kind != MEMORY_VRAM_VISIBLE ||
		    buffer->memory.size_bytes < KIB(12))
			continue;
		if (mprotect(middle, KIB(4), PROT_READ) < 0)
			return report_fail(buffers->report, -errno,
					   "cannot split the mapping at %p",
					   buffer->memory.address);
		buffer->split = true;
		return 0;
	}
	return report_fail(buffers->report, -ENOENT, "no buffer whose mapping could be split");
}

uint64_t buffers_bytes(const struct buffers *buffers)
{
	return buffers->bytes;
}

unsigned int buffers_count(const struct buffers *buffers)
{
	return buffers->count;
}
