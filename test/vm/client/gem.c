/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_gem LOG vmem|ipc BUFFERS: a process with buffers whose dma-bufs the render file of the
 * compute VM has imported. GEM handles in between are closed again, so the numbers have holes.
 *
 * vmem: memory of the virtual memory API, as ROCr makes it: KFD allocates VRAM without an address,
 * and GEM_VA maps the imported object. The first buffer is mapped at two GPU addresses and for the
 * CPU, the others at one GPU address each. A verification copies each buffer through each of its
 * GPU addresses, and writes the first buffer at one address to read it at the other. Then it makes
 * one more buffer, whose GEM handle must be the lowest free number, and frees it.
 *
 * ipc: buffers with IPC handles, as ROCr 7.2 makes them (IPCCreate() in its runtime.cpp): KFD maps
 * VRAM, and four bytes are noted at the imported object. A verification lets the GPU write each
 * buffer at its address, and compares what the CPU sees through the GEM handle, and the four bytes.
 * Then it makes an IPC handle of each buffer once more, which must be the one it has. A process
 * that has moved to a GPU with another id cannot do that. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <amdgpu_drm.h>

#include "raw_gem.h"
#include "raw_kfd.h"
#include "serve.h"

#define BUFFERS_MAX 1024
#define BYTES       16384u
#define WORDS       (BYTES / sizeof(uint64_t))

struct buffer {
	struct raw_bo bo; /* vmem: its address is that of the first mapping */
	uint32_t handle;
	uint64_t generation; /* of the contents */
};

struct gem {
	struct report report;
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo staging;
	struct buffer buffers[BUFFERS_MAX];
	unsigned int count;
	char *second; /* vmem: the second mapping of the first buffer */
};

static int fail(struct gem *gem, int ret, const char *what, unsigned int number)
{
	return report_fail(&gem->report, ret, "buffer %u: %s: %s", number, what, strerror(-ret));
}

static int copy(struct gem *gem, const void *from, void *to)
{
	raw_queue_copy(&gem->queue, from, to, BYTES);
	raw_queue_ring(&gem->queue);
	return raw_queue_wait(&gem->queue);
}

static uint64_t word(const struct gem *gem, unsigned int number, size_t i)
{
	uint64_t generation = gem->buffers[number].generation;

	return (((uint64_t)number + 1) << 40 ^ generation << 24 ^ i) * 0x9e3779b97f4a7c15ull;
}

/* Gives the buffer new contents through @address. */
static int write_at(struct gem *gem, unsigned int number, char *address)
{
	uint64_t *words = (uint64_t *)(void *)gem->staging.address;

	gem->buffers[number].generation++;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = word(gem, number, i);
	return copy(gem, words, address);
}

static int check(struct gem *gem, unsigned int number, const void *memory, const char *where)
{
	const uint64_t *words = memory;

	for (size_t i = 0; i < WORDS; i++) {
		if (words[i] != word(gem, number, i))
			return report_fail(&gem->report, -EIO,
					   "buffer %u: word %zu %s is 0x%" PRIx64, number, i, where,
					   words[i]);
	}
	return 0;
}

/* *@ret_handle: that of the buffer's object. -EINVAL: KFD does not know the GPU's id any more. */
static int import(struct gem *gem, const struct buffer *buffer, uint32_t *ret_handle)
{
	int fd = -1, ret = raw_export(&gem->process, &buffer->bo, &fd);

	if (ret == 0)
		ret = raw_gem_import(gem->process.render[0], fd, ret_handle);
	if (fd >= 0)
		(void)close(fd);
	return ret;
}

/* Makes all buffers by @make, with a hole in the GEM handles before every @hole-th of them. */
static int open_all(struct gem *gem, unsigned int hole,
		    int (*make)(struct gem *gem, unsigned int i))
{
	struct raw_gem_holes holes = { 0 };
	int ret = raw_open_acquired(&gem->process);

	if (ret == 0)
		ret = raw_alloc_mapped(&gem->process, 0, RAW_GTT, BYTES, &gem->staging);
	if (ret == 0)
		ret = raw_create_queue(&gem->process, 0, &gem->queue);
	for (unsigned int i = 0; ret == 0 && i < gem->count; i++) {
		if (i % hole == 0)
			ret = raw_gem_take_hole(gem->process.render[0], &holes);
		if (ret == 0)
			ret = make(gem, i);
	}
	return ret ? ret : raw_gem_free_holes(gem->process.render[0], &holes);
}

/* --- vmem --------------------------------------------------------------------------------------
 */

static int map(const struct gem *gem, uint32_t handle, const char *address)
{
	return raw_gem_map(gem->process.render[0], handle, (uintptr_t)address, 0, BYTES);
}

static char *reserve(void)
{
	void *address =
		mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return address == MAP_FAILED ? NULL : address;
}

static int make_vmem(struct gem *gem, unsigned int number)
{
	struct buffer *buffer = &gem->buffers[number];
	int ret;

	buffer->bo = (struct raw_bo){ .size = BYTES };
	ret = raw_alloc_at(&gem->process, gem->process.gpu[0].gpu_id, RAW_VRAM, &buffer->bo);
	if (ret == 0)
		ret = import(gem, buffer, &buffer->handle);
	buffer->bo.address = reserve();
	if (ret == 0 && !buffer->bo.address)
		ret = -ENOMEM;
	if (ret == 0)
		ret = map(gem, buffer->handle, buffer->bo.address);
	return ret ? ret : write_at(gem, number, buffer->bo.address);
}

/* The first buffer also gets another GPU address, and the CPU's view at the first one. */
static int start_vmem(void *arg)
{
	struct gem *gem = arg;
	struct buffer *first = &gem->buffers[0];
	int ret = open_all(gem, 4, make_vmem);

	gem->second = reserve();
	if (ret == 0 && !gem->second)
		ret = -ENOMEM;
	if (ret == 0)
		ret = map(gem, first->handle, gem->second);
	return ret ? ret : raw_mmap(gem->process.render[0], &first->bo);
}

static int read_at(struct gem *gem, unsigned int number, const char *address, const char *where)
{
	int ret;

	memset(gem->staging.address, 0xee, BYTES);
	ret = copy(gem, address, gem->staging.address);
	return ret ? ret : check(gem, number, gem->staging.address, where);
}

/* The holes are free, and the first is number 1. The object is not one of KFD: a process that has
 * moved to a GPU with another id cannot export any (kfd_ioctl_export_dmabuf() in Linux 6.12
 * to 7.3). */
static int make_one_more(struct gem *gem)
{
	int render = gem->process.render[0];
	char *address = reserve();
	uint32_t handle;
	int ret = raw_gem_create(render, AMDGPU_GEM_DOMAIN_VRAM, BYTES, &handle);

	if (ret == 0 && handle != 1)
		return report_fail(&gem->report, -EIO, "a new GEM handle is %u", handle);
	if (ret == 0)
		ret = map(gem, handle, address);
	if (ret == 0)
		ret = copy(gem, gem->staging.address, address);
	if (ret == 0)
		ret = raw_gem_unmap(render, handle, (uintptr_t)address, BYTES);
	if (ret == 0)
		ret = raw_gem_close(render, handle);
	if (address)
		(void)munmap(address, BYTES);
	return ret;
}

static int verify_vmem(struct gem *gem)
{
	struct buffer *first = &gem->buffers[0];
	int ret = 0;

	for (unsigned int i = 0; i < gem->count; i++) {
		ret = read_at(gem, i, gem->buffers[i].bo.address, "at its address");
		if (ret < 0)
			return fail(gem, ret, "cannot be read", i);
	}
	ret = read_at(gem, 0, gem->second, "at its second address");
	if (ret == 0)
		ret = write_at(gem, 0, gem->second);
	if (ret == 0)
		ret = read_at(gem, 0, first->bo.address, "that was written at the second address");
	if (ret == 0)
		ret = check(gem, 0, first->bo.address, "for the CPU");
	if (ret == 0)
		ret = make_one_more(gem);
	return ret < 0 ? fail(gem, ret, "does not work any more", 0) : 0;
}

/* The queue never rests: it reads the buffers in turn until a signal comes. */
static int run_vmem(void *arg, const sigset_t *signals)
{
	struct gem *gem = arg;
	const struct timespec pause = { .tv_nsec = 5000000 };
	int signal = 0, ret = 0;

	for (unsigned int i = 0; ret == 0; i = (i + 1) % gem->count) {
		signal = sigtimedwait(signals, NULL, &pause);
		if (signal == SIGTERM)
			return verify_vmem(gem);
		if (signal == SIGUSR1)
			ret = verify_vmem(gem);
		else
			ret = read_at(gem, i, gem->buffers[i].bo.address, "at its address");
		if (signal == SIGUSR1 && ret == 0)
			report_line(&gem->report, "verified");
	}
	return fail(gem, ret, "is wrong", 0);
}

/* --- ipc ---------------------------------------------------------------------------------------
 */

static uint32_t mark_of(unsigned int number)
{
	return (number + 1) * 2654435761u;
}

static int make_ipc(struct gem *gem, unsigned int number)
{
	struct buffer *buffer = &gem->buffers[number];
	int ret = raw_alloc_mapped(&gem->process, 0, RAW_VRAM, BYTES, &buffer->bo);

	if (ret == 0)
		ret = import(gem, buffer, &buffer->handle);
	return ret ? ret : raw_gem_mark(gem->process.render[0], buffer->handle, mark_of(number));
}

static bool set_up_ipc(void *arg)
{
	struct gem *gem = arg;
	int ret = open_all(gem, 2, make_ipc);

	return ret == 0 || fail(gem, ret, "cannot be made", 0) == 0;
}

/* The GPU gives all buffers new contents. */
static bool begin_ipc(void *arg)
{
	struct gem *gem = arg;

	for (unsigned int i = 0; i < gem->count; i++) {
		int ret = write_at(gem, i, gem->buffers[i].bo.address);

		if (ret < 0)
			return fail(gem, ret, "cannot be written", i) == 0;
	}
	return true;
}

static int compare(struct gem *gem, unsigned int number)
{
	uint64_t offset;
	int render = gem->process.render[0];
	int ret = raw_gem_offset(render, gem->buffers[number].handle, &offset);
	void *words;

	if (ret < 0)
		return ret;
	words = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, render, (off_t)offset);
	if (words == MAP_FAILED)
		return -errno;
	ret = check(gem, number, words, "by its GEM handle");
	(void)munmap(words, BYTES);
	return ret;
}

static int check_mark(struct gem *gem, unsigned int number)
{
	uint32_t mark = 0;
	int ret = raw_gem_read_mark(gem->process.render[0], gem->buffers[number].handle, &mark);

	if (ret == 0 && mark != mark_of(number))
		ret = report_fail(&gem->report, -EIO, "buffer %u: its four bytes are 0x%x", number,
				  mark);
	return ret;
}

static int make_again(struct gem *gem, unsigned int number, unsigned int *count)
{
	uint32_t handle = 0;
	int ret = import(gem, &gem->buffers[number], &handle);

	if (ret == -EINVAL)
		return 0;
	++*count;
	if (ret == 0 && handle != gem->buffers[number].handle)
		ret = report_fail(&gem->report, -EIO, "buffer %u: its handle is %u, not %u", number,
				  handle, gem->buffers[number].handle);
	return ret;
}

static bool verify_ipc(void *arg)
{
	struct gem *gem = arg;
	unsigned int exported = 0;

	for (unsigned int i = 0; i < gem->count; i++) {
		int ret = compare(gem, i);

		if (ret == 0)
			ret = check_mark(gem, i);
		if (ret == 0)
			ret = make_again(gem, i, &exported);
		if (ret < 0)
			return fail(gem, ret, "is wrong", i) == 0;
	}
	report_line(&gem->report, "made %u handles again", exported);
	return true;
}

static bool tear_down_ipc(void *arg)
{
	struct gem *gem = arg;

	for (unsigned int i = 0; i < gem->count; i++) {
		int ret = raw_gem_close(gem->process.render[0], gem->buffers[i].handle);

		if (ret < 0)
			return fail(gem, ret, "cannot be closed", i) == 0;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct gem gem;

	gem.count = argc == 4 ? (unsigned int)atoi(argv[3]) : 0;
	if (!gem.count || gem.count > BUFFERS_MAX)
		return 2;
	report_init(&gem.report, argv[1]);
	if (!strcmp(argv[2], "vmem"))
		return serve_running(&gem.report, &gem, start_vmem, run_vmem);
	return serve(&(struct serve){ &gem.report, &gem, set_up_ipc, begin_ipc, verify_ipc,
				      tear_down_ipc });
}
