/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_vmem LOG HANDLES: a process with memory of the virtual memory API, made as ROCr makes it: KFD
 * allocates VRAM without an address, the render file of the compute VM imports its dma-buf, and
 * GEM_VA maps it.
 *
 * The first of HANDLES buffers is mapped at two GPU addresses and for the CPU, the others at one
 * GPU address each. Every fourth GEM handle is closed again, so the numbers have holes. A
 * verification copies each buffer through each of its GPU addresses, and writes the first buffer at
 * one address to read it at the other. Then it makes one more buffer, whose GEM handle must be the
 * lowest free number, and frees it. */
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
#include "report.h"
#include "serve.h"

#define HANDLES_MAX 1024
#define BYTES       16384u
#define WORDS       (BYTES / sizeof(uint64_t))
#define GOLDEN      0x9e3779b97f4a7c15ull

struct buffer {
	struct raw_bo bo; /* its address is that of the first mapping */
	char *second;     /* the second mapping, or NULL */
	uint32_t handle;
	uint64_t generation;
};

struct vmem {
	struct report *report;
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo staging;
	struct buffer buffers[HANDLES_MAX];
	unsigned int count;
};

static uint64_t word(unsigned int number, uint64_t generation, size_t i)
{
	return (((uint64_t)number + 1) << 40 ^ generation << 24 ^ i) * GOLDEN;
}

static void fill(uint64_t *words, unsigned int number, uint64_t generation)
{
	for (size_t i = 0; i < WORDS; i++)
		words[i] = word(number, generation, i);
}

static int fail(struct vmem *vmem, int ret, const char *what, unsigned int number)
{
	return report_fail(vmem->report, ret, "buffer %u: %s: %s", number, what, strerror(-ret));
}

static int map(const struct vmem *vmem, uint32_t handle, const char *address)
{
	return raw_gem_map(vmem->process.render[0], handle, (uintptr_t)address, 0, BYTES);
}

static char *reserve(void)
{
	void *address =
		mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return address == MAP_FAILED ? NULL : address;
}

static int import(struct vmem *vmem, struct buffer *buffer)
{
	int fd = -1, ret = raw_export(&vmem->process, &buffer->bo, &fd);

	if (ret == 0)
		ret = raw_gem_import(vmem->process.render[0], fd, &buffer->handle);
	if (fd >= 0)
		(void)close(fd);
	return ret;
}

static int make(struct vmem *vmem, struct buffer *buffer)
{
	int ret;

	buffer->bo = (struct raw_bo){ .size = BYTES };
	ret = raw_alloc_at(&vmem->process, vmem->process.gpu[0].gpu_id, RAW_VRAM, &buffer->bo);
	if (ret == 0)
		ret = import(vmem, buffer);
	buffer->bo.address = reserve();
	if (ret == 0 && !buffer->bo.address)
		ret = -ENOMEM;
	return ret ? ret : map(vmem, buffer->handle, buffer->bo.address);
}

static int copy(struct vmem *vmem, const void *from, void *to)
{
	raw_queue_copy(&vmem->queue, from, to, BYTES);
	raw_queue_ring(&vmem->queue);
	return raw_queue_wait(&vmem->queue);
}

/* Gives the buffer new contents through @address. */
static int write_at(struct vmem *vmem, unsigned int number, char *address)
{
	fill((uint64_t *)(void *)vmem->staging.address, number, ++vmem->buffers[number].generation);
	return copy(vmem, vmem->staging.address, address);
}

static int check(struct vmem *vmem, unsigned int number, const uint64_t *words, const char *where)
{
	for (size_t i = 0; i < WORDS; i++) {
		if (words[i] != word(number, vmem->buffers[number].generation, i))
			return report_fail(vmem->report, -EIO,
					   "buffer %u: word %zu %s is 0x%" PRIx64, number, i, where,
					   words[i]);
	}
	return 0;
}

static int read_at(struct vmem *vmem, unsigned int number, const char *address, const char *where)
{
	int ret;

	memset(vmem->staging.address, 0xee, BYTES);
	ret = copy(vmem, address, vmem->staging.address);
	return ret ? ret
		   : check(vmem, number, (const uint64_t *)(void *)vmem->staging.address, where);
}

/* A hole for every fourth number. */
static int make_all(struct vmem *vmem)
{
	struct raw_gem_holes holes = { 0 };
	int render = vmem->process.render[0], ret = 0;

	for (unsigned int i = 0; ret == 0 && i < vmem->count; i++) {
		if (i % 4 == 0)
			ret = raw_gem_take_hole(render, &holes);
		if (ret == 0)
			ret = make(vmem, &vmem->buffers[i]);
		if (ret == 0)
			ret = write_at(vmem, i, vmem->buffers[i].bo.address);
	}
	return ret ? ret : raw_gem_free_holes(render, &holes);
}

/* Of the first buffer: another GPU address, and the CPU's view at the first one. */
static int map_first(struct vmem *vmem)
{
	struct buffer *first = &vmem->buffers[0];
	int ret;

	first->second = reserve();
	if (!first->second)
		return -ENOMEM;
	ret = map(vmem, first->handle, first->second);
	return ret ? ret : raw_mmap(vmem->process.render[0], &first->bo);
}

static int start(struct vmem *vmem)
{
	int ret = raw_open_acquired(&vmem->process);

	if (ret == 0)
		ret = raw_alloc_mapped(&vmem->process, 0, RAW_GTT, BYTES, &vmem->staging);
	if (ret == 0)
		ret = raw_create_queue(&vmem->process, 0, &vmem->queue);
	if (ret == 0)
		ret = make_all(vmem);
	return ret == 0 ? map_first(vmem) : ret;
}

/* The holes are free, and the first is number 1. The object is not one of KFD: a process that has
 * moved to a GPU with another id cannot export any (kfd_ioctl_export_dmabuf() in Linux 6.12
 * to 7.3). */
static int make_one_more(struct vmem *vmem)
{
	int render = vmem->process.render[0];
	char *address = reserve();
	uint32_t handle;
	int ret = raw_gem_create(render, AMDGPU_GEM_DOMAIN_VRAM, BYTES, &handle);

	if (ret == 0 && handle != 1)
		return report_fail(vmem->report, -EIO, "a new GEM handle is %u", handle);
	if (ret == 0)
		ret = map(vmem, handle, address);
	if (ret == 0)
		ret = copy(vmem, vmem->staging.address, address);
	if (ret == 0)
		ret = raw_gem_unmap(render, handle, (uintptr_t)address, BYTES);
	if (ret == 0)
		ret = raw_gem_close(render, handle);
	if (address)
		(void)munmap(address, BYTES);
	return ret;
}

static int verify(struct vmem *vmem)
{
	struct buffer *first = &vmem->buffers[0];
	int ret = 0;

	for (unsigned int i = 0; i < vmem->count; i++) {
		ret = read_at(vmem, i, vmem->buffers[i].bo.address, "at its address");
		if (ret < 0)
			return fail(vmem, ret, "cannot be read", i);
	}
	ret = read_at(vmem, 0, first->second, "at its second address");
	if (ret == 0)
		ret = write_at(vmem, 0, first->second);
	if (ret == 0)
		ret = read_at(vmem, 0, first->bo.address, "that was written at the second address");
	if (ret == 0)
		ret = check(vmem, 0, (const uint64_t *)(void *)first->bo.address, "for the CPU");
	if (ret == 0)
		ret = make_one_more(vmem);
	return ret < 0 ? fail(vmem, ret, "does not work any more", 0) : 0;
}

/* The queue never rests: it reads the buffers in turn until a signal comes. */
static int run(struct vmem *vmem, const sigset_t *set)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	int signal = 0, ret = 0;

	for (unsigned int i = 0; ret == 0; i = (i + 1) % vmem->count) {
		signal = sigtimedwait(set, NULL, &pause);
		if (signal == SIGTERM)
			return verify(vmem);
		if (signal == SIGUSR1)
			ret = verify(vmem);
		else
			ret = read_at(vmem, i, vmem->buffers[i].bo.address, "at its address");
		if (signal == SIGUSR1 && ret == 0)
			report_line(vmem->report, "verified, %u handles", vmem->count);
	}
	return fail(vmem, ret, "is wrong", 0);
}

int main(int argc, char **argv)
{
	static struct vmem vmem;
	struct report report;
	sigset_t signals;
	int ret;

	vmem.count = argc == 3 ? (unsigned int)atoi(argv[2]) : 0;
	if (!vmem.count || vmem.count > HANDLES_MAX)
		return 2;
	report_init(&report, argv[1]);
	vmem.report = &report;
	signals = serve_block();
	ret = start(&vmem);
	if (ret < 0)
		return fail(&vmem, ret, "cannot start", 0) < 0;
	report_line(&report, "ready, %u handles", vmem.count);
	ret = run(&vmem, &signals);
	report_line(&report, ret < 0 ? "FAILED: memory is wrong" : "finished ok");
	return ret < 0 ? 1 : 0;
}
