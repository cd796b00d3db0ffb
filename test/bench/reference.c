// SPDX-License-Identifier: GPL-2.0-only
/* The method of CRIU's own plugin, as simple as possible, for comparison. In its favour, it opens
 * the device and registers the buffer once for each GPU, and not for each BO. */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "content/sdma_packet.h"
#include "methods.h"

#define PAGE 4096u

/* A BO at an address of the GPU. */
struct mapped {
	amdgpu_bo_handle bo;
	amdgpu_va_handle range;
	uint64_t va, size;
};

struct reference {
	int fd;
	amdgpu_device_handle device;
	amdgpu_context_handle context;
	struct packet_format format;
	char *memory;
	uint64_t size;
	struct mapped buffer;
	FILE *file;
};

static uint64_t whole_pages(uint64_t size)
{
	return (size + PAGE - 1) / PAGE * PAGE;
}

/* Takes the handle over. */
static int map(struct reference *reference, amdgpu_bo_handle bo, uint64_t size,
	       struct mapped *ret_mapped)
{
	struct mapped mapped = { .bo = bo, .size = whole_pages(size) };
	int ret;

	ret = amdgpu_va_range_alloc(reference->device, amdgpu_gpu_va_range_general, mapped.size,
				    PAGE, 0, &mapped.va, &mapped.range, 0);
	if (!ret)
		ret = amdgpu_bo_va_op(bo, 0, mapped.size, mapped.va, 0, AMDGPU_VA_OP_MAP);
	if (!ret)
		*ret_mapped = mapped;
	return ret;
}

static void unmap(struct mapped *mapped)
{
	if (!mapped->bo)
		return;
	(void)amdgpu_bo_va_op(mapped->bo, 0, mapped->size, mapped->va, 0, AMDGPU_VA_OP_UNMAP);
	(void)amdgpu_va_range_free(mapped->range);
	(void)amdgpu_bo_free(mapped->bo);
}

static int import(struct reference *reference, const struct content_bo *bo,
		  struct mapped *ret_mapped)
{
	struct amdgpu_bo_import_result result;
	int ret = amdgpu_bo_import(reference->device, amdgpu_bo_handle_type_dma_buf_fd,
				   (uint32_t)bo->dmabuf_fd, &result);

	return ret ? ret : map(reference, result.buf_handle, bo->size, ret_mapped);
}

/* A command buffer with the packets of one copy. */
static int make_ib(struct reference *reference, uint64_t from, uint64_t to, uint64_t size,
		   struct mapped *ret_ib, size_t *ret_dwords)
{
	size_t room = sdma_packet_copy_dwords(&reference->format, size) + PACKET_PAD_DWORDS, used;
	struct amdgpu_bo_alloc_request request = {
		.alloc_size = whole_pages(room * sizeof(uint32_t)),
		.phys_alignment = PAGE,
		.preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
	};
	amdgpu_bo_handle bo;
	void *dwords;
	int ret = amdgpu_bo_alloc(reference->device, &request, &bo);

	if (!ret)
		ret = map(reference, bo, request.alloc_size, ret_ib);
	if (!ret)
		ret = amdgpu_bo_cpu_map(bo, &dwords);
	if (ret)
		return ret;
	memset(dwords, 0, request.alloc_size);
	used = sdma_packet_emit_copy(&reference->format, dwords, from, to, size);
	*ret_dwords = (used + PACKET_PAD_DWORDS - 1) / PACKET_PAD_DWORDS * PACKET_PAD_DWORDS;
	return amdgpu_bo_cpu_unmap(bo);
}

static int submit_and_wait(struct reference *reference, const struct mapped *ib, size_t dwords,
			   amdgpu_bo_list_handle list)
{
	struct amdgpu_cs_ib_info info = { .ib_mc_address = ib->va, .size = (uint32_t)dwords };
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.resources = list,
		.number_of_ibs = 1,
		.ibs = &info,
	};
	struct amdgpu_cs_fence fence = { .context = reference->context,
					 .ip_type = AMDGPU_HW_IP_DMA };
	uint32_t expired = 0;
	int ret = amdgpu_cs_submit(reference->context, 0, &request, 1);

	fence.fence = request.seq_no;
	if (!ret)
		ret = amdgpu_cs_query_fence_status(&fence, AMDGPU_TIMEOUT_INFINITE, 0, &expired);
	return ret ? ret : expired ? 0 : -ETIME;
}

static int copy(struct reference *reference, const struct mapped *bo, bool save)
{
	amdgpu_bo_handle handles[] = { bo->bo, reference->buffer.bo, NULL };
	uint64_t from = save ? bo->va : reference->buffer.va;
	uint64_t to = save ? reference->buffer.va : bo->va;
	struct mapped ib = { 0 };
	amdgpu_bo_list_handle list;
	size_t dwords = 0;
	int ret = make_ib(reference, from, to, bo->size, &ib, &dwords);

	handles[2] = ib.bo;
	if (!ret)
		ret = amdgpu_bo_list_create(reference->device, 3, handles, NULL, &list);
	if (!ret) {
		ret = submit_and_wait(reference, &ib, dwords, list);
		(void)amdgpu_bo_list_destroy(list);
	}
	unmap(&ib);
	return ret;
}

static int move_bo(struct reference *reference, const struct content_bo *content, bool save)
{
	struct mapped bo = { 0 };
	int ret = 0;

	if (!save && fread(reference->memory, 1, content->size, reference->file) != content->size)
		return -EIO;
	ret = import(reference, content, &bo);
	if (!ret)
		ret = copy(reference, &bo, save);
	unmap(&bo);
	if (!ret && save &&
	    fwrite(reference->memory, 1, content->size, reference->file) != content->size)
		return -EIO;
	return ret;
}

static int move_length(struct reference *reference, const struct content_job *job, bool save)
{
	uint64_t length = htole64(content_size(job->bos, job->num_bos));

	if (save)
		return fwrite(&length, sizeof(length), 1, reference->file) == 1 ? 0 : -EIO;
	/* the length of a stream is already read */
	return job->streamed || fread(&length, sizeof(length), 1, reference->file) == 1 ? 0 : -EIO;
}

static int open_device(struct reference *reference, uint32_t render_minor)
{
	struct drm_amdgpu_info_hw_ip info;
	uint32_t major, minor;
	char path[64];
	int ret;

	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", render_minor);
	reference->fd = open(path, O_RDWR | O_CLOEXEC);
	if (reference->fd < 0)
		return -errno;
	ret = amdgpu_device_initialize(reference->fd, &major, &minor, &reference->device);
	if (!ret)
		ret = amdgpu_query_hw_ip_info(reference->device, AMDGPU_HW_IP_DMA, 0, &info);
	if (!ret)
		ret = sdma_packet_find_format(info.hw_ip_version_major, info.hw_ip_version_minor,
					      &reference->format);
	return ret ? ret : amdgpu_cs_ctx_create(reference->device, &reference->context);
}

static int make_buffer(struct reference *reference, const struct content_job *job)
{
	amdgpu_bo_handle bo;
	int ret;

	for (size_t i = 0; i < job->num_bos; i++) {
		if (job->bos[i].size > reference->size)
			reference->size = job->bos[i].size;
	}
	reference->size = whole_pages(reference->size);
	reference->memory = mmap(NULL, reference->size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reference->memory == MAP_FAILED)
		return -errno;
	ret = amdgpu_create_bo_from_user_mem(reference->device, reference->memory, reference->size,
					     &bo);
	return ret ? ret : map(reference, bo, reference->size, &reference->buffer);
}

static int set_up(struct reference *reference, const struct content_job *job, bool save)
{
	int ret = open_device(reference, job->render_minor);

	if (!ret)
		ret = make_buffer(reference, job);
	if (ret)
		return ret;
	reference->file = fdopen(dup(job->image_fd), save ? "w" : "r");
	return reference->file ? 0 : -errno;
}

static void tear_down(struct reference *reference)
{
	if (reference->file)
		(void)fclose(reference->file);
	unmap(&reference->buffer);
	if (reference->context)
		(void)amdgpu_cs_ctx_free(reference->context);
	if (reference->device)
		(void)amdgpu_device_deinitialize(reference->device);
	if (reference->fd >= 0)
		(void)close(reference->fd);
	if (reference->memory && reference->memory != MAP_FAILED)
		(void)munmap(reference->memory, reference->size);
}

/* Waits until the device has the data. */
static int finish(struct reference *reference)
{
	if (fflush(reference->file))
		return -errno;
	return fdatasync(fileno(reference->file)) < 0 && errno != EINVAL ? -errno : 0;
}

static int run(struct content_job *job, bool save)
{
	struct reference reference = { .fd = -1 };
	int ret = set_up(&reference, job, save);

	if (!ret)
		ret = move_length(&reference, job, save);
	for (size_t i = 0; !ret && i < job->num_bos; i++)
		ret = move_bo(&reference, &job->bos[i], save);
	if (!ret && save)
		ret = finish(&reference);
	tear_down(&reference);
	return ret;
}

int reference_run(struct content_job *jobs, size_t num_jobs, bool save)
{
	return for_all_jobs(jobs, num_jobs, save, run);
}
