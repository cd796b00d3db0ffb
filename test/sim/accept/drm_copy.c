// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stock libdrm_amdgpu on every simulated GPU: initialise, allocate, map, copy by command buffer,
 * import, user memory; and that what is malformed is refused and noticed. The KFD side has programs
 * of its own. */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <xf86drm.h>

#include "accept.h"

#define MIB (1ull << 20)

struct gpu {
	int fd;
	amdgpu_device_handle device;
	amdgpu_context_handle context;
	amdgpu_bo_handle ib_bo;
	uint32_t *ib;
	uint64_t ib_va;
};

struct buffer {
	amdgpu_bo_handle bo;
	amdgpu_va_handle va_handle;
	uint64_t va, size;
	uint32_t *cpu;
};

static void map_gpu(struct gpu *gpu, struct buffer *buffer)
{
	CHECK_INT(amdgpu_va_range_alloc(gpu->device, amdgpu_gpu_va_range_general, buffer->size,
					4096, 0, &buffer->va, &buffer->va_handle, 0),
		  0);
	CHECK_INT(amdgpu_bo_va_op(buffer->bo, 0, buffer->size, buffer->va, 0, AMDGPU_VA_OP_MAP), 0);
}

static void alloc(struct gpu *gpu, uint64_t size, uint32_t domain, struct buffer *buffer)
{
	struct amdgpu_bo_alloc_request request = { .alloc_size = size,
						   .phys_alignment = 4096,
						   .preferred_heap = domain };

	buffer->size = size;
	CHECK_INT(amdgpu_bo_alloc(gpu->device, &request, &buffer->bo), 0);
	CHECK_INT(amdgpu_bo_cpu_map(buffer->bo, (void **)&buffer->cpu), 0);
	map_gpu(gpu, buffer);
}

static void release(struct buffer *buffer)
{
	CHECK_INT(amdgpu_bo_va_op(buffer->bo, 0, buffer->size, buffer->va, 0, AMDGPU_VA_OP_UNMAP),
		  0);
	CHECK_INT(amdgpu_va_range_free(buffer->va_handle), 0);
	if (buffer->cpu)
		(void)amdgpu_bo_cpu_unmap(buffer->bo);
	CHECK_INT(amdgpu_bo_free(buffer->bo), 0);
}

/* Submits @dwords of gpu->ib with the given buffers listed; the result of
 * submission, or of waiting. */
static int submit(struct gpu *gpu, unsigned dwords, struct buffer **buffers, unsigned count)
{
	amdgpu_bo_handle list[8];
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = gpu->ib_va, .size = dwords };
	struct amdgpu_cs_request request = { .ip_type = AMDGPU_HW_IP_DMA,
					     .number_of_ibs = 1,
					     .ibs = &ib };
	struct amdgpu_cs_fence fence = { .context = gpu->context, .ip_type = AMDGPU_HW_IP_DMA };
	uint32_t expired = 0;
	unsigned i;
	int ret;

	list[0] = gpu->ib_bo;
	for (i = 0; i < count; i++)
		list[i + 1] = buffers[i]->bo;
	CHECK_INT(amdgpu_bo_list_create(gpu->device, count + 1, list, NULL, &request.resources), 0);
	ret = amdgpu_cs_submit(gpu->context, 0, &request, 1);
	if (ret == 0) {
		fence.fence = request.seq_no;
		ret = amdgpu_cs_query_fence_status(&fence, 60000000000ull, 0, &expired);
		CHECK(ret || expired);
	}
	CHECK_INT(amdgpu_bo_list_destroy(request.resources), 0);
	return ret;
}

static unsigned pad(uint32_t *ib, unsigned dwords)
{
	while (dwords % 8)
		ib[dwords++] = 0;
	return dwords;
}

static int copy(struct gpu *gpu, struct buffer *dst, struct buffer *src, uint64_t size)
{
	struct buffer *buffers[] = { dst, src };
	unsigned dwords = 0;
	uint64_t done;

	for (done = 0; done < size; done += 4 * MIB) {
		uint64_t bytes = size - done < 4 * MIB ? size - done : 4 * MIB;

		dwords +=
			put_copy(gpu->ib + dwords, dst->va + done, src->va + done, (uint32_t)bytes);
	}
	return submit(gpu, pad(gpu->ib, dwords), buffers, 2);
}

static void renew_context(struct gpu *gpu)
{
	CHECK_INT(amdgpu_cs_ctx_free(gpu->context), 0);
	CHECK_INT(amdgpu_cs_ctx_create(gpu->device, &gpu->context), 0);
}

static void test_copies(struct gpu *gpu)
{
	struct buffer vram, gtt, big;
	struct timespec start, end;

	alloc(gpu, 9 * MIB + 4096, AMDGPU_GEM_DOMAIN_VRAM, &vram);
	alloc(gpu, 9 * MIB + 4096, AMDGPU_GEM_DOMAIN_GTT, &gtt);
	CHECK_INT(vram.cpu[12345], 0);
	fill_pattern(gtt.cpu, gtt.size, 7);
	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK_INT(copy(gpu, &vram, &gtt, gtt.size), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("  9 MiB copied in %ld us\n",
	       (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000);
	CHECK(has_pattern(vram.cpu, vram.size, 7));
	/* exactly so many bytes */
	memset(gtt.cpu, 0x11, 8192);
	memset(vram.cpu, 0x22, 8192);
	CHECK_INT(copy(gpu, &vram, &gtt, 5), 0);
	CHECK(!memcmp(vram.cpu, "\x11\x11\x11\x11\x11\x22\x22\x22", 8));
	/* a big buffer costs what is touched of it */
	alloc(gpu, 8192 * MIB, AMDGPU_GEM_DOMAIN_VRAM, &big);
	CHECK_INT(copy(gpu, &big, &gtt, 4096), 0);
	CHECK_INT(big.cpu[0], 0x11111111);
	big.cpu[big.size / 4 - 1] = 99;
	release(&big);
	release(&vram);
	release(&gtt);
	expect_violations(0);
}

static void test_user_memory(struct gpu *gpu)
{
	struct buffer vram, user = { .size = 2 * MIB };
	void *memory =
		mmap(NULL, user.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *shared =
		mmap(NULL, user.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED && shared != MAP_FAILED);
	CHECK_INT(amdgpu_create_bo_from_user_mem(gpu->device, shared, user.size, &user.bo), -EPERM);
	CHECK_INT(amdgpu_create_bo_from_user_mem(gpu->device, memory, user.size, &user.bo), 0);
	map_gpu(gpu, &user);
	alloc(gpu, user.size, AMDGPU_GEM_DOMAIN_VRAM, &vram);
	fill_pattern(memory, user.size, 3);
	CHECK_INT(copy(gpu, &vram, &user, user.size), 0);
	CHECK(has_pattern(vram.cpu, user.size, 3));
	fill_pattern(vram.cpu, user.size, 4);
	CHECK_INT(copy(gpu, &user, &vram, user.size), 0);
	CHECK(has_pattern(memory, user.size, 4));
	release(&vram);
	release(&user);
	munmap(memory, 2 * MIB);
	munmap(shared, 2 * MIB);
	expect_violations(0);
}

static void test_sharing(struct gpu *gpu, struct gpu *other)
{
	struct buffer vram, imported = { .size = MIB };
	struct amdgpu_bo_import_result result;
	uint32_t fd, again;
	uint32_t *map;

	alloc(gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM, &vram);
	fill_pattern(vram.cpu, MIB, 5);
	CHECK_INT(amdgpu_bo_export(vram.bo, amdgpu_bo_handle_type_dma_buf_fd, &fd), 0);
	CHECK_INT(lseek((int)fd, 0, SEEK_END), MIB);
	map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK(has_pattern(map, MIB, 5));
	munmap(map, MIB);
	CHECK_INT(amdgpu_bo_import(other->device, amdgpu_bo_handle_type_dma_buf_fd, fd, &result),
		  0);
	CHECK_INT(result.alloc_size, MIB);
	imported.bo = result.buf_handle;
	map_gpu(other, &imported);
	alloc(other, MIB, AMDGPU_GEM_DOMAIN_GTT, &vram);
	CHECK_INT(copy(other, &vram, &imported, MIB), 0);
	CHECK(has_pattern(vram.cpu, MIB, 5));
	CHECK_INT(amdgpu_bo_export(imported.bo, amdgpu_bo_handle_type_dma_buf_fd, &again), 0);
	close((int)again);
	close((int)fd);
	release(&vram);
	release(&imported);
	expect_violations(0);
}

/* Each of these hangs or corrupts real hardware; here it is an error, and it is counted. */
static void test_malformed(struct gpu *gpu)
{
	struct buffer a, b;
	struct buffer *both[] = { &a, &b };
	uint32_t *ib = gpu->ib;
	uint64_t last;

	alloc(gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM, &a);
	alloc(gpu, MIB, AMDGPU_GEM_DOMAIN_GTT, &b);
	put_copy(ib, a.va, b.va, 64);
	CHECK_INT(submit(gpu, 7, both, 2), -EINVAL);
	expect_violations(1);
	/* one byte beyond the last mapping there is */
	last = a.va > b.va ? a.va : b.va;
	put_copy(ib, last + MIB - 64, b.va, 65);
	CHECK_INT(submit(gpu, pad(ib, 7), both, 2), -ECANCELED);
	expect_violations(1);
	CHECK_INT(submit(gpu, pad(ib, 7), both, 2), -ECANCELED);
	expect_violations(0);
	renew_context(gpu);
	/* not in the list */
	put_copy(ib, a.va, b.va, 64);
	CHECK_INT(submit(gpu, pad(ib, 7), both, 1), -ECANCELED);
	expect_violations(1);
	renew_context(gpu);
	/* wrong opcode, reserved bits, count too large */
	ib[0] = 2;
	CHECK_INT(submit(gpu, 8, both, 2), -ECANCELED);
	renew_context(gpu);
	ib[0] = 1 | 1 << 18;
	CHECK_INT(submit(gpu, 8, both, 2), -ECANCELED);
	renew_context(gpu);
	ib[0] = 1;
	ib[1] = 0x400000;
	CHECK_INT(submit(gpu, 8, both, 2), -ECANCELED);
	renew_context(gpu);
	ib[1] = 63;
	ib[2] = 1;
	CHECK_INT(submit(gpu, 8, both, 2), -ECANCELED);
	renew_context(gpu);
	expect_violations(4);
	ib[2] = 0;
	CHECK_INT(submit(gpu, 8, both, 2), 0);
	release(&a);
	release(&b);
	expect_violations(0);
}

static void test_faults(struct gpu *gpu)
{
	struct amdgpu_cs_fence fence = { .context = gpu->context, .ip_type = AMDGPU_HW_IP_DMA };
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = gpu->ib_va, .size = 8 };
	struct amdgpu_cs_request request = { .ip_type = AMDGPU_HW_IP_DMA,
					     .number_of_ibs = 1,
					     .ibs = &ib };
	uint32_t expired = 1;

	sim_write("faults", "drm:CS 1 -5");
	memset(gpu->ib, 0, 32);
	CHECK_INT(submit(gpu, 8, NULL, 0), -EIO);
	CHECK_INT(submit(gpu, 8, NULL, 0), 0);
	sim_write("faults", "engine:IB 2 -62");
	CHECK_INT(submit(gpu, 8, NULL, 0), 0);
	CHECK_INT(submit(gpu, 8, NULL, 0), -ETIME);
	CHECK_INT(submit(gpu, 8, NULL, 0), 0);
	sim_write("fence_hang", "1");
	CHECK_INT(amdgpu_bo_list_create(gpu->device, 1, &gpu->ib_bo, NULL, &request.resources), 0);
	CHECK_INT(amdgpu_cs_submit(gpu->context, 0, &request, 1), 0);
	fence.fence = request.seq_no;
	CHECK_INT(amdgpu_cs_query_fence_status(&fence, 50000000, 0, &expired), 0);
	CHECK_INT(expired, 0);
	sim_write("fence_hang", "0");
	CHECK_INT(amdgpu_cs_query_fence_status(&fence, 60000000000ull, 0, &expired), 0);
	CHECK_INT(expired, 1);
	CHECK_INT(amdgpu_bo_list_destroy(request.resources), 0);
	expect_violations(0);
}

static void test_rules(struct gpu *gpu)
{
	union drm_amdgpu_gem_create create = { .in = { .bo_size = 65536,
						       .domains = AMDGPU_GEM_DOMAIN_VRAM } };
	struct drm_amdgpu_gem_va va = {
		.operation = AMDGPU_VA_OP_MAP, .flags = 6, .va_address = 1 << 20, .map_size = 65536
	};
	struct drm_amdgpu_gem_userptr user = { .addr = 0x1000, .size = 4096, .flags = 0xe };
	union drm_amdgpu_gem_mmap map;
	int other = open(drmGetRenderDeviceNameFromFd(gpu->fd), O_RDWR);

	CHECK(other >= 0);
	CHECK_INT(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
	va.handle = map.in.handle = create.out.handle;
	CHECK_INT(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &map), 0);
	CHECK(mmap(NULL, 65536, PROT_READ, MAP_SHARED, other, (off_t)map.out.addr_ptr) ==
		      MAP_FAILED &&
	      errno == EACCES);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, gpu->fd, (off_t)map.out.addr_ptr + 4096) ==
		      MAP_FAILED &&
	      errno == EINVAL);
	CHECK(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE, gpu->fd,
		   (off_t)map.out.addr_ptr) == MAP_FAILED);
	CHECK(mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE, gpu->fd, (off_t)map.out.addr_ptr) !=
	      MAP_FAILED);
	CHECK_INT(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_VA, &va), 0);
	va.va_address += 4096;
	va.map_size = 4096;
	CHECK(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_VA, &va) == -1 && errno == EINVAL);
	va.operation = AMDGPU_VA_OP_UNMAP;
	CHECK(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_VA, &va) == -1 && errno == ENOENT);
	va.handle = 77;
	CHECK(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_VA, &va) == -1 && errno == ENOENT);
	CHECK(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_USERPTR, &user) == -1 && errno == EFAULT);
	user.flags = 2;
	CHECK(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_USERPTR, &user) == -1 && errno == EACCES);
	CHECK(ioctl(gpu->fd, DRM_IOWR(0x7f, struct drm_amdgpu_gem_va), &va) == -1 &&
	      errno == EINVAL);
	create.in.bo_size = 4096;
	create.in.domain_flags = 1 << 5;
	create.in.alignment = 0;
	create.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
	CHECK(ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create) == -1 && errno == EINVAL);
	close(other);
	expect_violations(0);
}

static int open_gpu(const char *path, struct gpu *gpu)
{
	struct buffer ib;
	uint32_t major, minor;
	drmVersionPtr version;
	int is_amdgpu;

	gpu->fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(gpu->fd >= 0);
	version = drmGetVersion(gpu->fd);
	CHECK(version);
	is_amdgpu = !strcmp(version->name, "amdgpu");
	drmFreeVersion(version);
	if (!is_amdgpu) {
		close(gpu->fd);
		return 0;
	}
	CHECK_INT(amdgpu_device_initialize(gpu->fd, &major, &minor, &gpu->device), 0);
	CHECK_INT(major, 3);
	CHECK_INT(amdgpu_cs_ctx_create(gpu->device, &gpu->context), 0);
	alloc(gpu, 65536, AMDGPU_GEM_DOMAIN_GTT, &ib);
	gpu->ib_bo = ib.bo;
	gpu->ib = ib.cpu;
	gpu->ib_va = ib.va;
	return 1;
}

int main(void)
{
	static struct gpu gpus[64];
	char path[64];
	int count = 0, minor, i, j;

	sim_write("violations", "0");
	for (minor = 128; minor < 192; minor++) {
		snprintf(path, sizeof(path), "/dev/dri/renderD%d", minor);
		if (access(path, F_OK) == 0)
			count += open_gpu(path, &gpus[count]);
	}
	CHECK(count > 0);
	for (i = 0; i < count; i++)
		for (j = 0; j < i; j++)
			CHECK(gpus[i].device != gpus[j].device);
	for (i = 0; i < count; i++) {
		test_copies(&gpus[i]);
		test_user_memory(&gpus[i]);
		test_sharing(&gpus[i], &gpus[(i + 1) % count]);
	}
	test_malformed(&gpus[0]);
	test_faults(&gpus[0]);
	test_rules(&gpus[0]);
	printf("drm_copy: ok on %d GPUs\n", count);
	return 0;
}
