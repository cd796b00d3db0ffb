/* SPDX-License-Identifier: GPL-2.0-only */
/* The buffer comes from a render node, as in graphics, and goes to libhsakmt as a dma-buf. chain.c
 * counts in it. */
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amdgpu_drm.h>
#include <hsakmt.h>

#include "extras.h"
#include "raw_gem.h"
#include "raw_kfd.h"

#define SHARED_BYTES 65536
#define WORDS_MAX    64

static int export_buffer(int render, int *ret_fd)
{
	struct drm_prime_handle prime = { .flags = DRM_RDWR };
	int ret = raw_gem_create(render, AMDGPU_GEM_DOMAIN_VRAM, SHARED_BYTES, &prime.handle);

	if (ret == 0)
		ret = raw_ioctl(render, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime);
	*ret_fd = prime.fd;
	return ret;
}

int shared_make(struct report *report, const char *gpu_choice, int *ret_fd)
{
	int render, ret = extras_open_render(report, gpu_choice, &render);

	if (ret < 0)
		return ret;
	ret = export_buffer(render, ret_fd);
	close(render);
	return ret < 0 ? report_fail(report, ret, "cannot make a buffer to share: %s",
				     strerror(-ret))
		       : 0;
}

int shared_open(struct report *report, const struct gpu *gpu, int fd, struct shared *shared)
{
	struct gpus only = memory_only(gpu);
	HsaGraphicsResourceInfo info = { 0 };
	HSAuint32 node = gpu->node;
	HSAuint64 address = 0;
	HSAKMT_STATUS status;

	shared->report = report;
	status = hsaKmtRegisterGraphicsHandleToNodes((HSAuint64)fd, &info, 1, &node);
	if (!status)
		status = hsaKmtMapMemoryToGPU(info.MemoryAddress, info.SizeInBytes, &address);
	close(fd);
	if (status)
		return report_fail(report, -EIO, "cannot share a buffer: %d", status);
	shared->words = info.MemoryAddress;
	return memory_alloc(report, MEMORY_GTT, 4096, gpu, &only, &shared->staging);
}

int shared_report(struct shared *shared, struct sdma_queue *queue, uint32_t instance,
		  unsigned int count)
{
	const uint64_t *words = shared->staging.address;
	char text[WORDS_MAX * 21 + 1] = "";
	size_t used = 0;
	int ret;

	ret = sdma_copy_now(queue, shared->words, shared->staging.address, 4096);
	if (ret < 0)
		return ret;
	for (unsigned int i = 1; i <= count && i < WORDS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %" PRIu64, words[i]);
	report_line(shared->report, "shared %u%s", instance, text);
	return 0;
}

void shared_close(struct shared *shared)
{
	if (!shared->words)
		return;
	if (hsaKmtUnmapMemoryToGPU(shared->words) || hsaKmtDeregisterMemory(shared->words))
		report_fail(shared->report, -EIO, "cannot free the shared buffer");
	memory_free(shared->report, &shared->staging);
	shared->words = NULL;
}
