/* SPDX-License-Identifier: GPL-2.0-only */
/* Render nodes: identity, buffers, sharing, mapping. Stock libdrm_amdgpu does the
 * talking where it can. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <drm.h>
#include <xf86drm.h>

#include "contract.h"
#include "cs_gpu.h"
#include "raw_kfd.h"

RULE(drm_every_gpu_has_a_device_handle_of_its_own)
{
	amdgpu_device_handle handles[RAW_GPUS], again;
	struct raw_gpu gpus[RAW_GPUS];
	uint32_t major, minor;
	int count, fd;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	for (int i = 0; i < count; i++) {
		EXPECT(raw_open_render(&gpus[i], &fd), 0);
		EXPECT(amdgpu_device_initialize(fd, &major, &minor, &handles[i]), 0);
		EXPECT(major, 3);
		for (int j = 0; j < i; j++)
			EXPECT_TRUE(handles[i] != handles[j]);
	}
	/* A second file of the same GPU is taken for the first one. */
	EXPECT(raw_open_render(&gpus[0], &fd), 0);
	EXPECT(amdgpu_device_initialize(fd, &major, &minor, &again), 0);
	EXPECT_TRUE(again == handles[0]);
}

RULE(drm_dispatch_and_names_are_those_of_amdgpu)
{
	struct drm_version version = { 0 };
	struct drm_gem_flink flink = { .handle = 1 };
	struct drm_get_cap cap = { .capability = DRM_CAP_PRIME };
	char name[16] = "", room[256] = { 0 };
	struct raw_gpu gpus[RAW_GPUS];
	struct stat node;
	int count, fd;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	EXPECT(raw_open_render(&gpus[0], &fd), 0);
	EXPECT(fstat(fd, &node), 0);
	EXPECT(node.st_rdev >> 8, 226);
	EXPECT(node.st_rdev & 0xff, gpus[0].render_minor);
	version.name = name;
	version.name_len = sizeof(name) - 1;
	EXPECT(raw_ioctl(fd, DRM_IOCTL_VERSION, &version), 0);
	EXPECT(strcmp(name, "amdgpu"), 0);
	EXPECT(version.version_major, 3);
	EXPECT(raw_ioctl(fd, DRM_IOCTL_GET_CAP, &cap), 0);
	EXPECT(cap.value, 3);
	EXPECT(raw_ioctl(fd, DRM_IOWR(0x9f, uint64_t), room), -EINVAL);
	EXPECT(raw_ioctl(fd, _IOWR('x', 0x00, uint64_t), room), -ENOTTY);
	EXPECT(raw_ioctl(fd, DRM_IOCTL_GEM_FLINK, &flink), -EACCES);
	EXPECT(raw_ioctl(fd, DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_SCHED, uint64_t), room),
	       -EACCES);
}

RULE(drm_engine_copies_to_the_byte_on_every_ring)
{
	struct drm_amdgpu_info_hw_ip ip = { 0 };
	struct amdgpu_gpu_info info;
	struct cs_bo vram, host;
	struct cs_gpu gpu;

	EXPECT(cs_open(0, &gpu), 0);
	EXPECT(amdgpu_query_gpu_info(gpu.device, &info), 0);
	EXPECT_TRUE(info.family_id >= 141);
	EXPECT(amdgpu_query_hw_ip_info(gpu.device, AMDGPU_HW_IP_DMA, 0, &ip), 0);
	EXPECT_TRUE(ip.available_rings == 1 || ip.available_rings == 3);
	EXPECT(ip.ib_start_alignment, 256);
	EXPECT(cs_alloc(&gpu, AMDGPU_GEM_DOMAIN_VRAM, 1 << 20, &vram), 0);
	EXPECT(cs_alloc(&gpu, AMDGPU_GEM_DOMAIN_GTT, 1 << 20, &host), 0);
	for (unsigned int ring = 0; ip.available_rings >> ring; ring++) {
		for (unsigned int i = 0; i < 1 << 18; i++)
			((uint32_t *)host.cpu)[i] = i * 2654435761u + ring;
		memset(vram.cpu, 0xee, 1 << 20);
		/* Neither a byte less nor one more. */
		EXPECT(cs_copy(&gpu, ring, &host, &vram, 777777), 0);
		EXPECT(memcmp(vram.cpu, host.cpu, 777777), 0);
		EXPECT(((unsigned char *)vram.cpu)[777777], 0xee);
		EXPECT(cs_copy(&gpu, ring, &host, &vram, 1 << 20), 0);
		EXPECT(memcmp(vram.cpu, host.cpu, 1 << 20), 0);
	}
}

static void importer_main(struct peer *peer)
{
	struct cs_bo bo = { 0 }, host;
	struct amdgpu_bo_import_result result, same;
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cs_gpu gpu;
	int fd;

	EXPECT(recvmsg(peer->socket, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	EXPECT(cs_open(0, &gpu), 0);
	EXPECT(amdgpu_bo_import(gpu.device, amdgpu_bo_handle_type_dma_buf_fd, (uint32_t)fd,
				&result),
	       0);
	EXPECT(result.alloc_size, 65536);
	EXPECT(amdgpu_bo_import(gpu.device, amdgpu_bo_handle_type_dma_buf_fd, (uint32_t)fd, &same),
	       0);
	EXPECT_TRUE(same.buf_handle == result.buf_handle);
	bo.handle = result.buf_handle;
	bo.size = result.alloc_size;
	EXPECT(cs_map(&gpu, &bo), 0);
	EXPECT(cs_alloc(&gpu, AMDGPU_GEM_DOMAIN_GTT, 65536, &host), 0);
	EXPECT(cs_copy(&gpu, 0, &bo, &host, 65536), 0);
	EXPECT(((unsigned char *)host.cpu)[65535], 0x77);
	memset(host.cpu, 0x99, 65536);
	EXPECT(cs_copy(&gpu, 0, &host, &bo, 32768), 0);
}

static int send_fd(struct peer *peer, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(peer->socket, &message, 0) == 1 ? 0 : -errno;
}

RULE(drm_buffers_are_shared_with_another_process)
{
	struct stat first, second;
	struct peer importer;
	uint32_t fd, again;
	struct cs_gpu gpu;
	struct cs_bo bo;

	peer_start(importer_main, &importer);
	EXPECT(cs_open(0, &gpu), 0);
	EXPECT(cs_alloc(&gpu, AMDGPU_GEM_DOMAIN_VRAM, 65536, &bo), 0);
	memset(bo.cpu, 0x77, 65536);
	EXPECT(amdgpu_bo_export(bo.handle, amdgpu_bo_handle_type_dma_buf_fd, &fd), 0);
	EXPECT(amdgpu_bo_export(bo.handle, amdgpu_bo_handle_type_dma_buf_fd, &again), 0);
	EXPECT(fstat((int)fd, &first), 0);
	EXPECT(fstat((int)again, &second), 0);
	EXPECT(second.st_ino, (long long)first.st_ino);
	EXPECT(lseek((int)fd, 0, SEEK_END), 65536);
	EXPECT(send_fd(&importer, (int)fd), 0);
	EXPECT(peer_join(&importer), 0);
	EXPECT(((unsigned char *)bo.cpu)[32767], 0x99);
	EXPECT(((unsigned char *)bo.cpu)[32768], 0x77);
}

RULE(drm_user_memory_is_copied_and_not_exported)
{
	struct drm_amdgpu_gem_userptr args = { 0 };
	struct cs_bo user, vram;
	struct cs_gpu gpu;
	uint32_t fd;
	char *memory;

	EXPECT(cs_open(0, &gpu), 0);
	memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(cs_wrap_user(&gpu, memory, 1 << 20, &user), 0);
	EXPECT(cs_alloc(&gpu, AMDGPU_GEM_DOMAIN_VRAM, 1 << 20, &vram), 0);
	memset(vram.cpu, 0x66, 1 << 20);
	EXPECT(cs_copy(&gpu, 0, &vram, &user, 1 << 20), 0);
	EXPECT(memcmp(memory, vram.cpu, 1 << 20), 0);
	memset(memory, 0x12, 1 << 20);
	EXPECT(cs_copy(&gpu, 0, &user, &vram, 4096), 0);
	EXPECT(((char *)vram.cpu)[4095], 0x12);
	EXPECT(((char *)vram.cpu)[4096], 0x66);
	/* It has no dma-buf; -1 is what libdrm makes of EPERM. */
	EXPECT_TRUE(amdgpu_bo_export(user.handle, amdgpu_bo_handle_type_dma_buf_fd, &fd) < 0);
	args.addr = (uintptr_t)memory + 8;
	args.size = 4096;
	args.flags = AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
	EXPECT(raw_ioctl(gpu.fd, DRM_IOCTL_AMDGPU_GEM_USERPTR, &args), -EINVAL);
	args.addr = (uintptr_t)memory;
	args.flags = AMDGPU_GEM_USERPTR_VALIDATE;
	EXPECT(raw_ioctl(gpu.fd, DRM_IOCTL_AMDGPU_GEM_USERPTR, &args), -EACCES);
}

RULE(drm_user_memory_must_be_private)
{
	struct cs_bo user;
	struct cs_gpu gpu;
	void *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(cs_open(0, &gpu), 0);
	EXPECT(cs_wrap_user(&gpu, memory, 65536, &user), -EPERM);
}

RULE(drm_addresses_are_checked)
{
	struct cs_gpu gpu;
	struct cs_bo bo;

	EXPECT(cs_open(0, &gpu), 0);
	EXPECT(cs_alloc(&gpu, AMDGPU_GEM_DOMAIN_GTT, 16384, &bo), 0);
	/* Overlap, below the floor, beyond the buffer, not aligned. */
	EXPECT(amdgpu_bo_va_op(bo.handle, 0, 4096, bo.address + 8192, 0, AMDGPU_VA_OP_MAP),
	       -EINVAL);
	EXPECT(amdgpu_bo_va_op(bo.handle, 0, 4096, 4096, 0, AMDGPU_VA_OP_MAP), -EINVAL);
	EXPECT(amdgpu_bo_va_op(bo.handle, 0, 32768, bo.address + (1 << 20), 0, AMDGPU_VA_OP_MAP),
	       -EINVAL);
	EXPECT(amdgpu_bo_va_op(bo.handle, 0, 4096, bo.address + (1 << 20) + 8, 0, AMDGPU_VA_OP_MAP),
	       -EINVAL);
	EXPECT(amdgpu_bo_va_op(bo.handle, 0, 16384, bo.address + (1 << 20), 0, AMDGPU_VA_OP_UNMAP),
	       -ENOENT);
	EXPECT(amdgpu_bo_va_op(bo.handle, 0, 16384, bo.address, 0, AMDGPU_VA_OP_UNMAP), 0);
}

static int cpu_map(int fd, uint64_t offset, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (at == MAP_FAILED)
		return -errno;
	munmap(at, size);
	return 0;
}

RULE(drm_mmap_wants_the_right_file_and_offset)
{
	union drm_amdgpu_gem_create create = {
		.in = { .bo_size = 16384, .alignment = 4096, .domains = AMDGPU_GEM_DOMAIN_VRAM },
	};
	union drm_amdgpu_gem_mmap map = { .in = { .handle = 0 } };
	struct drm_gem_close done = { .handle = 0 };
	struct raw_gpu gpus[RAW_GPUS];
	int count, fd, other;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	EXPECT(raw_open_render(&gpus[0], &fd), 0);
	EXPECT(raw_open_render(&gpus[0], &other), 0);
	EXPECT(raw_ioctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &map), -ENOENT);
	EXPECT(raw_ioctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
	EXPECT(create.out.handle, 1);
	map.in.handle = create.out.handle;
	done.handle = create.out.handle;
	EXPECT(raw_ioctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &map), 0);
	EXPECT(cpu_map(fd, map.out.addr_ptr, 16384), 0);
	EXPECT(cpu_map(dup(fd), map.out.addr_ptr, 16384), 0);
	EXPECT(cpu_map(other, map.out.addr_ptr, 16384), -EACCES);
	EXPECT(cpu_map(fd, map.out.addr_ptr + 4096, 4096), -EINVAL);
	EXPECT(cpu_map(fd, map.out.addr_ptr, 20480), -EINVAL);
	EXPECT(raw_ioctl(fd, DRM_IOCTL_GEM_CLOSE, &done), 0);
	EXPECT(raw_ioctl(fd, DRM_IOCTL_GEM_CLOSE, &done), -EINVAL);
}

RULE(drm_prime_keeps_its_errors)
{
	struct drm_prime_handle args = { .handle = 77, .flags = DRM_CLOEXEC };
	struct raw_gpu gpus[RAW_GPUS];
	int count, fd;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	EXPECT(raw_open_render(&gpus[0], &fd), 0);
	EXPECT(raw_ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args), -ENOENT);
	args.flags = 0x100;
	EXPECT(raw_ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args), -EINVAL);
	args.fd = 9999;
	EXPECT(raw_ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args), -EBADF);
	args.fd = fd;
	EXPECT(raw_ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args), -EINVAL);
}
