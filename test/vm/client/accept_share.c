/* SPDX-License-Identifier: GPL-2.0-only */
/* Buffers that KFD exports and imports: whose object, which dma-buf, which handles. What a process
 * does with its own dma-buf holds for one of another process, too. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <drm.h>

#include "accept.h"
#include "accept_criu.h"
#include "raw_kfd.h"

#define SIZE 65536u

/* A process with a buffer that it has exported. */
struct owner {
	struct raw_process process;
	struct raw_bo bo;
	int fd;
};

/* Offsets of two devices may be equal by chance: so another buffer comes first on the owner's. */
static int owner_open(struct owner *owner)
{
	struct raw_bo before;

	EXPECT(raw_open_acquired(&owner->process), 0);
	EXPECT(raw_alloc_mapped(&owner->process, 0, RAW_VRAM, 4096, &before), 0);
	EXPECT(raw_alloc_mapped(&owner->process, 0, RAW_VRAM, SIZE, &owner->bo), 0);
	EXPECT(raw_export(&owner->process, &owner->bo, &owner->fd), 0);
	return 0;
}

/* Reserves an address and imports for it. */
static int import(struct owner *owner, int gpu, struct raw_bo *ret_bo)
{
	void *address = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return raw_import(&owner->process, owner->process.gpu[gpu].gpu_id, owner->fd, address,
			  ret_bo);
}

static long inode(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) < 0 ? -errno : (long)stat.st_ino;
}

/* What CHECKPOINT says of the buffer; the caller closes the dma-bufs of the image. */
static int save(struct owner *owner, const struct raw_bo *bo, struct criu_image *image,
		struct kfd_criu_bo_bucket **ret_bucket)
{
	EXPECT(criu_process_info(owner->process.kfd, image), 0);
	EXPECT(criu_checkpoint(owner->process.kfd, image), 0);
	EXPECT(criu_unpause(owner->process.kfd), 0);
	for (uint32_t i = 0; i < image->args.num_bos; i++)
		if (image->bos[i].addr == (uintptr_t)bo->address)
			*ret_bucket = &image->bos[i];
	EXPECT_TRUE(*ret_bucket != NULL);
	return 0;
}

/* Writes by the owner's mapping are seen by the importer's, and the other way round. */
static int check_shared(struct owner *owner, const struct raw_bo *imported, int gpu,
			uint64_t offset)
{
	struct raw_bo view = *imported;

	view.mmap_offset = offset;
	EXPECT(raw_mmap(owner->process.render[gpu], &view), 0);
	owner->bo.address[1] = 0x11;
	EXPECT(view.address[1], 0x11);
	view.address[SIZE - 1] = 0x22;
	EXPECT(owner->bo.address[SIZE - 1], 0x22);
	return 0;
}

/* Imports on @gpu and compares with the owner's. */
static int check_import(int gpu, uint32_t flags, bool same_object)
{
	struct criu_image *image = criu_image_new();
	struct kfd_criu_bo_bucket *own = NULL, *other = NULL;
	struct owner owner;
	struct raw_bo imported;

	EXPECT(owner_open(&owner), 0);
	EXPECT(import(&owner, gpu, &imported), 0);
	EXPECT(save(&owner, &imported, image, &other), 0);
	for (uint32_t i = 0; i < image->args.num_bos; i++)
		if (image->bos[i].addr == (uintptr_t)owner.bo.address)
			own = &image->bos[i];
	EXPECT_TRUE(own != NULL);
	EXPECT(other->alloc_flags, flags);
	EXPECT(own->offset == other->offset, same_object);
	EXPECT(inode((int)other->dmabuf_fd), inode((int)own->dmabuf_fd));
	EXPECT(inode((int)other->dmabuf_fd), inode(owner.fd));
	EXPECT(check_shared(&owner, &imported, gpu, other->offset), 0);
	criu_close_dmabufs(image);
	return 0;
}

static int test_same_device(void)
{
	return check_import(0, 0xc0000001, true);
}

/* The first GPU's device has this many partitions, which come first. */
static int count_partitions(void)
{
	char path[128], line[128];
	unsigned long location, first = 0;
	struct raw_gpu gpus[RAW_GPUS];
	int count, same = 0;
	FILE *stream;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/virtual/kfd/kfd/topology/nodes/%d/properties", gpus[i].node);
		stream = fopen(path, "re");
		EXPECT_TRUE(stream != NULL);
		while (fgets(line, sizeof(line), stream)) {
			if (sscanf(line, "location_id %lu", &location) != 1)
				continue;
			first = i ? first : location;
			same += location >> 3 == first >> 3;
		}
		fclose(stream);
	}
	return same;
}

static int test_partition(void)
{
	if (count_partitions() < 2)
		return accept_skip("no GPU has partitions");
	return check_import(1, 0xc0000001, true);
}

static int test_other_device(void)
{
	struct raw_gpu gpus[RAW_GPUS];
	int count;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	if (count_partitions() == count)
		return accept_skip("there is one GPU");
	return check_import(count - 1, 0xc0000002, false);
}

static int test_linux_6_1(void)
{
	struct kfd_criu_bo_bucket *first = NULL, *second = NULL;
	struct criu_image *image = criu_image_new(), *again = criu_image_new();
	struct owner owner = { .fd = -1 };
	struct raw_bo imported;
	int last;

	EXPECT(sim_write("kernel", "6.1"), 0);
	EXPECT(raw_open_acquired(&owner.process), 0);
	last = owner.process.gpus - 1;
	EXPECT(raw_alloc_mapped(&owner.process, 0, RAW_VRAM, SIZE, &owner.bo), 0);
	EXPECT(raw_export(&owner.process, &owner.bo, &owner.fd), -ENOTTY);
	EXPECT(save(&owner, &owner.bo, image, &first), 0);
	EXPECT(save(&owner, &owner.bo, again, &second), 0);
	EXPECT_TRUE(inode((int)first->dmabuf_fd) != inode((int)second->dmabuf_fd));
	owner.fd = (int)first->dmabuf_fd;
	EXPECT(import(&owner, 0, &imported), 0);
	EXPECT(check_shared(&owner, &imported, 0, first->offset), 0);
	if (last > 0 && last >= count_partitions())
		EXPECT(import(&owner, last, &imported), -EINVAL);
	return 0;
}

static int test_back_to_default(void)
{
	EXPECT(sim_write("kernel", "default"), 0);
	return 0;
}

/* An import that is freed deletes the exporter's handle in KFD's own file; the exporter deletes the
 * number again when another buffer has it. */
static int test_lost_handle(void)
{
	struct raw_bo imported, victim;
	struct owner owner;
	int fd, again;

	EXPECT(owner_open(&owner), 0);
	EXPECT(import(&owner, 0, &imported), 0);
	EXPECT(raw_free(&owner.process, &imported), 0);
	EXPECT(raw_export(&owner.process, &owner.bo, &again), 0);
	EXPECT(inode(again), inode(owner.fd));
	EXPECT(raw_alloc(&owner.process, owner.process.gpu[0].gpu_id, RAW_VRAM, SIZE, NULL,
			 &victim),
	       0);
	EXPECT(raw_unmap(&owner.process, &owner.bo, owner.process.gpu[0].gpu_id), 0);
	EXPECT(raw_free(&owner.process, &owner.bo), 0);
	EXPECT(raw_export(&owner.process, &victim, &fd), -ENOENT);
	return 0;
}

/* The number in fdinfo; -1 where the exporter is not DRM. */
static long holders(int fd)
{
	char path[64], line[128];
	bool drm = false;
	long count = -1;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	stream = fopen(path, "re");
	while (stream && fgets(line, sizeof(line), stream)) {
		drm = drm || strcmp(line, "exp_name:\tdrm\n") == 0;
		(void)sscanf(line, "count: %ld", &count);
	}
	if (stream)
		fclose(stream);
	return drm ? count : -1;
}

/* What each holder adds, with the DRM core's own code. */
static int test_holders(void)
{
	struct drm_prime_handle prime = { 0 };
	struct drm_gem_close gem = { 0 };
	struct raw_bo imported, foreign;
	struct owner owner;
	int last;

	EXPECT(owner_open(&owner), 0);
	/* the object, KFD's own file, the buffer of KFD, the descriptor */
	EXPECT(holders(owner.fd), 4);
	EXPECT(import(&owner, 0, &imported), 0);
	EXPECT(holders(owner.fd), 5);
	prime.fd = owner.fd;
	EXPECT(raw_ioctl(owner.process.render[0], DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), 0);
	EXPECT(holders(owner.fd), 6);
	gem.handle = prime.handle;
	EXPECT(raw_ioctl(owner.process.render[0], DRM_IOCTL_GEM_CLOSE, &gem), 0);
	EXPECT(holders(owner.fd), 5);
	EXPECT_TRUE(dup(owner.fd) >= 0);
	EXPECT(holders(owner.fd), 6);
	last = owner.process.gpus - 1;
	if (last < count_partitions())
		return 0;
	/* its attachment, its object, KFD's file on its device, its buffer of KFD */
	EXPECT(import(&owner, last, &foreign), 0);
	EXPECT(holders(owner.fd), 10);
	return 0;
}

struct change_handle {
	uint32_t handle, new_handle;
};

static int test_gem_handles(void)
{
	struct drm_prime_handle prime[3] = { { 0 } };
	struct change_handle change = { 1, 9 };
	struct drm_gem_close gem = { .handle = 1 };
	struct raw_process process;
	struct raw_bo bo;
	int render;

	EXPECT(raw_open_acquired(&process), 0);
	render = process.render[0];
	for (int i = 0; i < 3; i++) {
		EXPECT(raw_alloc(&process, process.gpu[0].gpu_id, RAW_VRAM, SIZE, NULL, &bo), 0);
		EXPECT(raw_export(&process, &bo, &prime[i].fd), 0);
		EXPECT(raw_ioctl(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime[i]), 0);
		EXPECT(prime[i].handle, i + 1);
	}
	EXPECT(raw_ioctl(render, DRM_IOCTL_GEM_CLOSE, &gem), 0);
	EXPECT(raw_ioctl(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime[2]), 0);
	EXPECT(prime[2].handle, 3);
	EXPECT(raw_ioctl(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime[0]), 0);
	EXPECT(prime[0].handle, 1);
	EXPECT(raw_ioctl(render, DRM_IOWR(0xd2, struct change_handle), &change), -EINVAL);
	return 0;
}

static const struct accept_test tests[] = {
	{ "share_import_on_the_same_device_is_the_object_itself", test_same_device, false },
	{ "share_partitions_have_the_same_objects_and_offsets", test_partition, false },
	{ "share_import_on_another_device_is_an_object_of_its_own", test_other_device, false },
	{ "share_linux_6_1_makes_a_dmabuf_at_each_export", test_linux_6_1, false },
	{ "share_goes_back_to_the_default_kernel", test_back_to_default, false },
	{ "share_a_freed_import_costs_another_buffer_its_handle", test_lost_handle, false },
	{ "share_fdinfo_counts_the_holders_of_a_dmabuf", test_holders, false },
	{ "share_gem_handles_are_the_lowest_free_numbers", test_gem_handles, false },
	{ 0 },
};

const struct accept_group accept_share_group = { "share", tests };
