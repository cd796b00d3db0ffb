/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_ipc LOG BUFFERS: a process that has buffers with IPC handles, as ROCr 7.2 makes them
 * (IPCCreate() in its runtime.cpp): KFD maps VRAM, the render file of the compute VM imports the
 * dma-buf, and four bytes are noted at the object.
 *
 * GEM handles in between are closed again, so the numbers have holes. A verification lets the GPU
 * write each buffer at its address, and compares what the CPU sees through the GEM handle, and the
 * four bytes. Then it makes an IPC handle of each buffer once more, which must be the one it has. A
 * process that has moved to a GPU with another id cannot do that. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw_gem.h"
#include "raw_kfd.h"
#include "serve.h"

#define BUFFERS_MAX 64
#define BYTES       16384u
#define WORDS       (BYTES / sizeof(uint64_t))

struct buffer {
	struct raw_bo bo;
	uint32_t handle;
	uint32_t mark;
};

struct ipc {
	struct report report;
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo staging;
	struct buffer buffers[BUFFERS_MAX];
	unsigned int count;
	uint64_t generation;
};

static bool fail(struct ipc *ipc, int ret, const char *what, unsigned int number)
{
	(void)report_fail(&ipc->report, 0, "buffer %u: %s: %s", number, what, strerror(-ret));
	return false;
}

/* *@ret_handle: that of the buffer's object. -EINVAL: KFD does not know the GPU's id any more. */
static int import(struct ipc *ipc, const struct buffer *buffer, uint32_t *ret_handle)
{
	int fd = -1, ret = raw_export(&ipc->process, &buffer->bo, &fd);

	if (ret == 0)
		ret = raw_gem_import(ipc->process.render[0], fd, ret_handle);
	if (fd >= 0)
		(void)close(fd);
	return ret;
}

static int make(struct ipc *ipc, unsigned int number)
{
	struct buffer *buffer = &ipc->buffers[number];
	int ret = raw_alloc_mapped(&ipc->process, 0, RAW_VRAM, BYTES, &buffer->bo);

	buffer->mark = ((uint32_t)number + 1) * 2654435761u;
	if (ret == 0)
		ret = import(ipc, buffer, &buffer->handle);
	return ret ? ret : raw_gem_mark(ipc->process.render[0], buffer->handle, buffer->mark);
}

static int make_all(struct ipc *ipc)
{
	struct raw_gem_holes holes = { 0 };
	int render = ipc->process.render[0], ret = 0;

	for (unsigned int i = 0; ret == 0 && i < ipc->count; i++) {
		if (i % 2 == 0)
			ret = raw_gem_take_hole(render, &holes);
		if (ret == 0)
			ret = make(ipc, i);
	}
	return ret ? ret : raw_gem_free_holes(render, &holes);
}

static bool set_up(void *arg)
{
	struct ipc *ipc = arg;
	int ret = raw_open_acquired(&ipc->process);

	if (ret == 0)
		ret = raw_alloc_mapped(&ipc->process, 0, RAW_GTT, BYTES, &ipc->staging);
	if (ret == 0)
		ret = raw_create_queue(&ipc->process, 0, &ipc->queue);
	if (ret == 0)
		ret = make_all(ipc);
	return ret == 0 || fail(ipc, ret, "cannot be made", 0);
}

static uint64_t word(const struct ipc *ipc, unsigned int number, size_t i)
{
	return (((uint64_t)number + 1) << 40 ^ ipc->generation << 24 ^ i) * 0x9e3779b97f4a7c15ull;
}

/* The GPU gives all buffers new contents. */
static bool begin(void *arg)
{
	struct ipc *ipc = arg;
	int ret = 0;

	ipc->generation++;
	for (unsigned int i = 0; ret == 0 && i < ipc->count; i++) {
		uint64_t *words = (uint64_t *)(void *)ipc->staging.address;

		for (size_t j = 0; j < WORDS; j++)
			words[j] = word(ipc, i, j);
		raw_queue_copy(&ipc->queue, words, ipc->buffers[i].bo.address, BYTES);
		raw_queue_ring(&ipc->queue);
		ret = raw_queue_wait(&ipc->queue);
		if (ret < 0)
			return fail(ipc, ret, "cannot be written", i);
	}
	return true;
}

static int compare(struct ipc *ipc, unsigned int number)
{
	uint64_t offset;
	int render = ipc->process.render[0];
	int ret = raw_gem_offset(render, ipc->buffers[number].handle, &offset);
	uint64_t *words;

	if (ret < 0)
		return ret;
	words = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, render, (off_t)offset);
	if (words == MAP_FAILED)
		return -errno;
	for (size_t i = 0; ret == 0 && i < WORDS; i++) {
		if (words[i] != word(ipc, number, i))
			ret = report_fail(&ipc->report, -EIO,
					  "buffer %u: word %zu is 0x%" PRIx64 " by its GEM handle",
					  number, i, words[i]);
	}
	(void)munmap(words, BYTES);
	return ret;
}

static bool has_mark(struct ipc *ipc, unsigned int number)
{
	const struct buffer *buffer = &ipc->buffers[number];
	uint32_t mark = 0;
	int ret = raw_gem_read_mark(ipc->process.render[0], buffer->handle, &mark);

	if (ret < 0)
		return fail(ipc, ret, "its four bytes cannot be read", number);
	return mark == buffer->mark ||
	       report_fail(&ipc->report, false, "buffer %u: its four bytes are 0x%x, not 0x%x",
			   number, mark, buffer->mark);
}

static bool make_again(struct ipc *ipc, unsigned int number, unsigned int *count)
{
	uint32_t handle = 0;
	int ret = import(ipc, &ipc->buffers[number], &handle);

	if (ret == -EINVAL)
		return true;
	if (ret < 0)
		return fail(ipc, ret, "cannot be exported", number);
	++*count;
	return handle == ipc->buffers[number].handle ||
	       report_fail(&ipc->report, false, "buffer %u: its handle is %u, not %u", number,
			   handle, ipc->buffers[number].handle);
}

static bool verify(void *arg)
{
	struct ipc *ipc = arg;
	unsigned int exported = 0;

	for (unsigned int i = 0; i < ipc->count; i++) {
		int ret = compare(ipc, i);

		if (ret < 0)
			return fail(ipc, ret, "is wrong", i);
		if (!has_mark(ipc, i) || !make_again(ipc, i, &exported))
			return false;
	}
	report_line(&ipc->report, "made %u handles again", exported);
	return true;
}

static bool tear_down(void *arg)
{
	struct ipc *ipc = arg;

	for (unsigned int i = 0; i < ipc->count; i++) {
		int ret = raw_gem_close(ipc->process.render[0], ipc->buffers[i].handle);

		if (ret < 0)
			return fail(ipc, ret, "cannot be closed", i);
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct ipc ipc;

	ipc.count = argc == 3 ? (unsigned int)atoi(argv[2]) : 0;
	if (!ipc.count || ipc.count > BUFFERS_MAX)
		return 2;
	report_init(&ipc.report, argv[1]);
	return serve(&(struct serve){ &ipc.report, &ipc, set_up, begin, verify, tear_down });
}
