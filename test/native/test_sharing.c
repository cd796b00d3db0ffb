// SPDX-License-Identifier: GPL-2.0-only
/* Tests through raw ioctls how processes, GPUs and render files share KFD's buffers. This program
 * plays two KFD processes. It needs a machine whose first two GPUs are partitions of one device. */
#include <amdgpu_drm.h>
#include <errno.h>
#include <stdio.h>

#include "sharing.h"

static uint32_t number(const struct raw_bo *bo)
{
	return (uint32_t)bo->handle;
}

/* Copies from @from, which the GPU reads, to @to, which the GPU writes. */
static void gpu_copy(struct raw_process *process, int gpu, const struct raw_bo *from,
		     const struct raw_bo *to)
{
	struct raw_queue queue;
	struct kfd_ioctl_destroy_queue_args destroy = { 0 };

	assert_int_equal(raw_create_queue(process, gpu, &queue), 0);
	raw_queue_copy(&queue, from->address, to->address, SIZE);
	raw_queue_ring(&queue);
	assert_int_equal(raw_queue_wait(&queue), 0);
	destroy.queue_id = queue.id;
	assert_int_equal(raw_ioctl(process->kfd, AMDKFD_IOC_DESTROY_QUEUE, &destroy), 0);
	(void)munmap(queue.slice, RAW_DOORBELL_BYTES);
	assert_int_equal(raw_unmap(process, &queue.ring, process->gpu[gpu].gpu_id), 0);
	release(process, &queue.ring);
	assert_int_equal(raw_unmap(process, &queue.pointers, process->gpu[gpu].gpu_id), 0);
	release(process, &queue.pointers);
}

/* Writes of one process are visible to the other, in both directions, on @gpu of the importer. */
static void check_shared(struct pair *pair, struct raw_bo *bo, struct raw_bo *imported, int gpu)
{
	uint32_t id = pair->importer.gpu[gpu].gpu_id;
	struct raw_bo host;

	assert_int_equal(raw_alloc_mapped(&pair->importer, gpu, RAW_GTT, SIZE, &host), 0);
	assert_int_equal(raw_map(&pair->importer, imported, id), 0);
	assert_int_equal(raw_mmap(pair->owner.render[FIRST], bo), 0);
	memset(bo->address, 0x5a, SIZE);
	gpu_copy(&pair->importer, gpu, imported, &host);
	assert_memory_equal(host.address, bo->address, SIZE);
	memset(host.address, 0xa5, SIZE / 2);
	gpu_copy(&pair->importer, gpu, &host, imported);
	assert_memory_equal(host.address, bo->address, SIZE);
	assert_int_equal(raw_unmap(&pair->importer, imported, id), 0);
	assert_int_equal(raw_unmap(&pair->importer, &host, id), 0);
	release(&pair->importer, &host);
}

static void an_import_on_the_same_device_is_the_object_itself(void **state)
{
	static const int gpus[] = { FIRST, PARTITION };
	struct kfd_criu_bo_bucket own, other;
	struct pair pair = open_pair();

	(void)state;
	for (size_t i = 0; i < sizeof(gpus) / sizeof(*gpus); i++) {
		struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM), imported;
		int fd = export(&pair.owner, &bo);

		imported = import(&pair.importer, gpus[i], fd);
		own = saved(&pair.owner, &bo);
		other = saved(&pair.importer, &imported);
		assert_int_equal(other.alloc_flags, 0xc0000001);
		assert_int_equal(other.size, SIZE);
		assert_int_equal(other.gpu_id, pair.importer.gpu[gpus[i]].gpu_id);
		assert_int_equal(other.offset, own.offset);
		assert_int_equal(inode((int)other.dmabuf_fd), inode(fd));
		assert_int_equal(inode((int)own.dmabuf_fd), inode(fd));
		check_shared(&pair, &bo, &imported, gpus[i]);
		(void)close((int)own.dmabuf_fd);
		(void)close((int)other.dmabuf_fd);
		(void)close(fd);
		release(&pair.owner, &bo);
		release(&pair.importer, &imported);
	}
	close_pair(&pair);
}

/* On another device, and of a buffer that KFD has not made, an import has the flags of every
 * import. */
static void amds_driver_gives_imports_the_flags_of_their_buffer(void **state)
{
	static const uint32_t flags[] = { RAW_VRAM, RAW_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT,
					  RAW_GTT };
	static const int gpus[] = { FIRST, PARTITION, OTHER };
	struct pair pair = open_pair();

	(void)state;
	sim_write("maker_flags", "1");
	for (size_t i = 0; i < 9; i++) {
		int gpu = gpus[i % 3];
		struct raw_bo bo = alloc(&pair.owner, FIRST, flags[i / 3]), imported;
		int fd = export(&pair.owner, &bo);
		struct kfd_criu_bo_bucket other;

		imported = import(&pair.importer, gpu, fd);
		/* also when the maker is gone */
		release(&pair.owner, &bo);
		other = saved(&pair.importer, &imported);
		assert_int_equal(other.alloc_flags, gpu == OTHER ? 0xc0000002 : flags[i / 3]);
		(void)close((int)other.dmabuf_fd);
		(void)close(fd);
		release(&pair.importer, &imported);
	}
	close_pair(&pair);
}

/* amdgpu_dma_buf_create_obj() places it in host memory, wherever the exporter's buffer is. */
static void an_import_on_another_device_is_an_object_of_its_own(void **state)
{
	struct pair pair = open_pair();
	/* offsets of two devices may be equal by chance, so the test skips the first offset */
	struct raw_bo before = alloc(&pair.owner, FIRST, RAW_VRAM);
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM);
	int fd = export(&pair.owner, &bo);
	struct raw_bo imported = import(&pair.importer, OTHER, fd);
	struct kfd_criu_bo_bucket own = saved(&pair.owner, &bo);
	struct kfd_criu_bo_bucket other = saved(&pair.importer, &imported);

	(void)state;
	assert_int_equal(other.alloc_flags, 0xc0000002);
	assert_int_equal(other.size, SIZE);
	assert_int_not_equal(other.offset, own.offset);
	assert_int_equal(inode((int)other.dmabuf_fd), inode(fd));
	check_shared(&pair, &bo, &imported, OTHER);
	(void)close((int)own.dmabuf_fd);
	(void)close((int)other.dmabuf_fd);
	(void)close(fd);
	release(&pair.owner, &before);
	release(&pair.owner, &bo);
	/* the importer's buffer outlives the owner */
	release(&pair.importer, &imported);
	close_pair(&pair);
}

static void handles_are_the_lowest_free_numbers(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM), own[3], imports[3], more;
	int fd = export(&pair.owner, &bo);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		own[i] = alloc(&pair.importer, FIRST, RAW_GTT);
		assert_int_equal(number(&own[i]), 2 * i);
		imports[i] = import(&pair.importer, FIRST, fd);
		assert_int_equal(number(&imports[i]), 2 * i + 1);
	}
	release(&pair.importer, &own[1]);
	release(&pair.importer, &imports[0]);
	imports[0] = import(&pair.importer, FIRST, fd);
	assert_int_equal(number(&imports[0]), 1);
	own[1] = alloc(&pair.importer, FIRST, RAW_GTT);
	assert_int_equal(number(&own[1]), 2);
	/* each GPU counts separately, and by the user's id */
	more = import(&pair.importer, OTHER, fd);
	assert_int_equal(more.handle, (uint64_t)pair.importer.gpu[OTHER].gpu_id << 32);
	(void)close(fd);
	release(&pair.importer, &more);
	for (int i = 0; i < 3; i++) {
		release(&pair.importer, &own[i]);
		release(&pair.importer, &imports[i]);
	}
	release(&pair.owner, &bo);
	close_pair(&pair);
}

/* Two fragments of one block: each open creates a separate import with its own address. */
static void a_process_may_hold_an_object_several_times(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM), first, second, same;
	uint32_t id = pair.importer.gpu[FIRST].gpu_id;
	int fd = export(&pair.owner, &bo);

	(void)state;
	first = import(&pair.importer, FIRST, fd);
	second = import(&pair.importer, FIRST, fd);
	assert_int_equal(raw_import(&pair.importer, id, fd, first.address, &same), 0);
	assert_int_equal(raw_map(&pair.importer, &first, id), 0);
	assert_int_equal(raw_map(&pair.importer, &second, id), 0);
	/* amdgpu_vm.c: amdgpu_vm_bo_map() refuses overlapping mappings */
	assert_int_equal(raw_map(&pair.importer, &same, id), -EINVAL);
	assert_int_equal(raw_unmap(&pair.importer, &first, id), 0);
	assert_int_equal(raw_map(&pair.importer, &same, id), 0);
	assert_int_equal(raw_free(&pair.importer, &same), -EBUSY);
	assert_int_equal(raw_unmap(&pair.importer, &same, id), 0);
	assert_int_equal(raw_free(&pair.importer, &same), 0);
	assert_int_equal(raw_unmap(&pair.importer, &second, id), 0);
	release(&pair.importer, &first);
	release(&pair.importer, &second);
	release(&pair.owner, &bo);
	(void)close(fd);
	close_pair(&pair);
}

/* import_obj_create() allows the importer's file, free_memory_of_gpu() revokes it. */
static void an_importer_may_map_for_the_cpu_as_long_as_it_holds_the_object(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM), imported, view;
	int fd = export(&pair.owner, &bo);

	(void)state;
	assert_int_equal(raw_mmap(pair.owner.render[FIRST], &bo), 0);
	imported = import(&pair.importer, FIRST, fd);
	view = imported;
	view.mmap_offset = bo.mmap_offset;
	assert_int_equal(raw_mmap(pair.importer.render[FIRST], &view), 0);
	bo.address[17] = 0x33;
	assert_int_equal(view.address[17], 0x33);
	view.address[18] = 0x44;
	assert_int_equal(bo.address[18], 0x44);
	release(&pair.importer, &imported);
	view.address = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(raw_mmap(pair.importer.render[FIRST], &view), -EACCES);
	(void)munmap(view.address, SIZE);
	(void)close(fd);
	release(&pair.owner, &bo);
	close_pair(&pair);
}

/* The exporter deletes the handle that both use, but the importer already has the dma-buf. */
static void an_importer_can_be_saved_when_the_owner_is_gone(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM), imported;
	struct kfd_criu_bo_bucket bucket;
	int fd = export(&pair.owner, &bo);

	(void)state;
	imported = import(&pair.importer, FIRST, fd);
	release(&pair.owner, &bo);
	bucket = saved(&pair.importer, &imported);
	assert_int_equal(bucket.offset, bo.mmap_offset);
	assert_int_equal(inode((int)bucket.dmabuf_fd), inode(fd));
	(void)close((int)bucket.dmabuf_fd);
	(void)close(fd);
	release(&pair.importer, &imported);
	close_pair(&pair);
}

/* Freeing an import also deletes the exporter's handle in KFD's own file. The exporter deletes that
 * number again, even if another buffer has it by then. */
static void a_freed_import_costs_another_buffer_its_handle(void **state)
{
	struct kfd_criu_bo_bucket victims, bucket;
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM), imported, victim, late;
	int fd = export(&pair.owner, &bo), wrong, own;

	(void)state;
	imported = import(&pair.importer, FIRST, fd);
	release(&pair.importer, &imported);
	/* the exporter keeps its dma-buf but loses its handle */
	own = export(&pair.owner, &bo);
	assert_int_equal(inode(own), inode(fd));
	victim = alloc(&pair.importer, FIRST, RAW_VRAM);
	release(&pair.owner, &bo);
	assert_int_equal(raw_export(&pair.importer, &victim, &wrong), -ENOENT);
	assert_int_equal(checkpoint(&pair.importer, victim.address, &bucket), -ENOENT);
	/* after another allocation, the importer exports the owner's new buffer */
	late = alloc(&pair.owner, FIRST, RAW_VRAM);
	victims = saved(&pair.importer, &victim);
	bucket = saved(&pair.owner, &late);
	assert_int_equal(inode((int)victims.dmabuf_fd), inode((int)bucket.dmabuf_fd));
	assert_int_not_equal(victims.offset, bucket.offset);
	(void)close((int)victims.dmabuf_fd);
	(void)close((int)bucket.dmabuf_fd);
	(void)close(own);
	(void)close(fd);
	release(&pair.importer, &victim);
	release(&pair.owner, &late);
	close_pair(&pair);
}

/* The number in the dma-buf's fdinfo. */
static long holders(int fd)
{
	char path[64], line[128];
	long count = -1;
	FILE *stream;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	stream = fopen(path, "re");
	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream))
		(void)sscanf(line, "count: %ld", &count);
	(void)fclose(stream);
	return count;
}

static void gem_close(int render, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	assert_int_equal(raw_ioctl(render, DRM_IOCTL_GEM_CLOSE, &args), 0);
}

/* The same steps as in the virtual machine, where the DRM core's own code counts. */
static void fdinfo_counts_the_holders_of_a_dmabuf(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM), imported, foreign;
	int fd = export(&pair.owner, &bo), more;
	uint32_t handle;

	(void)state;
	/* the object, KFD's own file, the buffer of KFD, the descriptor */
	assert_int_equal(holders(fd), 4);
	imported = import(&pair.importer, FIRST, fd);
	assert_int_equal(holders(fd), 5);
	handle = prime_import(pair.importer.render[FIRST], fd);
	assert_int_equal(holders(fd), 6);
	gem_close(pair.importer.render[FIRST], handle);
	assert_int_equal(holders(fd), 5);
	more = dup(fd);
	assert_int_equal(holders(fd), 6);
	(void)close(more);
	/* its attachment, its object, KFD's file on its device, its buffer of KFD */
	foreign = import(&pair.importer, OTHER, fd);
	assert_int_equal(holders(fd), 9);
	release(&pair.importer, &foreign);
	assert_int_equal(holders(fd), 5);
	/* an import that is freed also deletes the handle in KFD's own file */
	release(&pair.importer, &imported);
	assert_int_equal(holders(fd), 2);
	(void)close(fd);
	release(&pair.owner, &bo);
	close_pair(&pair);
}

/* By a share handle of AMD's out-of-tree driver, each of them. */
static void each_import_by_name_on_another_device_is_an_object_of_its_own(void **state)
{
	struct raw_bo bo, imports[2] = { { .size = SIZE }, { .size = SIZE } };
	uint32_t name[4];
	struct pair pair;
	int fd;

	(void)state;
	sim_write("kernel", "dkms");
	pair = open_pair();
	bo = alloc(&pair.owner, FIRST, RAW_VRAM);
	fd = export(&pair.owner, &bo);
	assert_int_equal(raw_ipc_export(&pair.owner, &bo, name), 0);
	/* the object, KFD's own file, the buffer of KFD, the name, the descriptor */
	assert_int_equal(holders(fd), 5);
	for (int i = 0; i < 2; i++) {
		imports[i].address =
			mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_int_equal(raw_ipc_import(&pair.importer, pair.importer.gpu[OTHER].gpu_id,
						name, &imports[i]),
				 0);
		/* its attachment, its buffer of KFD */
		assert_int_equal(holders(fd), 7 + 2 * i);
	}
	assert_int_not_equal(imports[0].mmap_offset, imports[1].mmap_offset);
	check_shared(&pair, &bo, &imports[0], OTHER);
	check_shared(&pair, &bo, &imports[1], OTHER);
	release(&pair.importer, &imports[0]);
	release(&pair.importer, &imports[1]);
	assert_int_equal(holders(fd), 5);
	(void)close(fd);
	release(&pair.owner, &bo);
	close_pair(&pair);
	sim_write("kernel", "default");
}

static void linux_6_1_imports_on_the_same_device_only_and_has_no_handles(void **state)
{
	struct kfd_criu_bo_bucket own, other;
	struct raw_bo bo, imported, victim;
	struct pair pair;

	(void)state;
	sim_write("kernel", "6.1");
	pair = open_pair();
	bo = alloc(&pair.owner, FIRST, RAW_VRAM);
	own = saved(&pair.owner, &bo);
	assert_int_equal(raw_import(&pair.importer, pair.importer.gpu[OTHER].gpu_id,
				    (int)own.dmabuf_fd, bo.address, &imported),
			 -EINVAL);
	imported = import(&pair.importer, FIRST, (int)own.dmabuf_fd);
	other = saved(&pair.importer, &imported);
	assert_int_equal(other.offset, own.offset);
	assert_int_equal(other.alloc_flags, 0xc0000001);
	(void)close((int)other.dmabuf_fd);
	check_shared(&pair, &bo, &imported, FIRST);
	release(&pair.importer, &imported);
	victim = alloc(&pair.importer, FIRST, RAW_VRAM);
	release(&pair.owner, &bo);
	other = saved(&pair.importer, &victim);
	(void)close((int)other.dmabuf_fd);
	(void)close((int)own.dmabuf_fd);
	release(&pair.importer, &victim);
	close_pair(&pair);
}

/* DRM_IOCTL_GEM_CHANGE_HANDLE, which Linux 7.2 and 7.3 answer with drm_invalid_op(). */
struct change_handle {
	uint32_t handle, new_handle;
};

static void gem_handles_are_the_lowest_free_numbers_one_an_object(void **state)
{
	struct pair pair = open_pair();
	int render = pair.importer.render[FIRST], fds[3];
	struct change_handle change = { 1, 9 };
	struct raw_bo bos[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		bos[i] = alloc(&pair.owner, FIRST, RAW_VRAM);
		fds[i] = export(&pair.owner, &bos[i]);
		assert_int_equal(prime_import(render, fds[i]), i + 1);
		assert_int_equal(mmap_offset(render, (uint32_t)i + 1), bos[i].mmap_offset);
	}
	assert_int_equal(prime_import(render, fds[1]), 2);
	gem_close(render, 1);
	gem_close(render, 2);
	assert_int_equal(prime_import(render, fds[1]), 1);
	assert_int_equal(prime_import(render, fds[0]), 2);
	assert_int_equal(raw_ioctl(render, DRM_IOWR(0xd2, struct change_handle), &change), -EINVAL);
	/* a file of a partition knows the object; another device's file has its own object */
	assert_int_equal(prime_import(pair.importer.render[PARTITION], fds[2]), 1);
	assert_int_equal(mmap_offset(pair.importer.render[PARTITION], 1), bos[2].mmap_offset);
	assert_int_equal(prime_import(pair.importer.render[OTHER], fds[2]), 1);
	assert_int_not_equal(mmap_offset(pair.importer.render[OTHER], 1), bos[2].mmap_offset);
	for (int i = 0; i < 3; i++) {
		(void)close(fds[i]);
		release(&pair.owner, &bos[i]);
	}
	close_pair(&pair);
}

static struct drm_amdgpu_gem_create_in create_info(int render, uint32_t handle)
{
	struct drm_amdgpu_gem_create_in info = { 0 };
	struct drm_amdgpu_gem_op args = {
		.handle = handle,
		.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
		.value = (uintptr_t)&info,
	};

	assert_int_equal(raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_OP, &args), 0);
	return info;
}

/* The flags of a KFD buffer, as an importer reads them. */
static uint64_t gem_flags(struct pair *pair, uint32_t flags)
{
	struct raw_bo bo = alloc(&pair->owner, FIRST, flags | RAW_RWX);
	int fd = export(&pair->owner, &bo), render = pair->importer.render[FIRST];
	uint32_t handle = prime_import(render, fd);
	uint64_t gem = create_info(render, handle).domain_flags;

	gem_close(render, handle);
	(void)close(fd);
	release(&pair->owner, &bo);
	return gem;
}

static void creation_flags_of_a_buffer_can_be_read_but_not_whether_it_is_public(void **state)
{
	const uint32_t vram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM, host = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
	const uint64_t standard = AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE;
	const uint64_t cleared = standard | AMDGPU_GEM_CREATE_VRAM_CLEARED;
	struct pair pair = open_pair();

	(void)state;
	assert_int_equal(gem_flags(&pair, host), standard);
	assert_int_equal(gem_flags(&pair, vram), cleared);
	assert_int_equal(gem_flags(&pair, vram | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC), cleared);
	assert_int_equal(gem_flags(&pair, host | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT),
			 standard | 1 << 13);
	assert_int_equal(gem_flags(&pair, vram | KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED),
			 cleared | 1 << 14);
	assert_int_equal(gem_flags(&pair, vram | 1 << 24), cleared | 1 << 15);
	assert_int_equal(gem_flags(&pair, vram | 1 << 23),
			 cleared | AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS);
	close_pair(&pair);
}

static struct kfd_ioctl_get_dmabuf_info_args dmabuf_info(struct raw_process *process, int fd)
{
	struct kfd_ioctl_get_dmabuf_info_args args = { .dmabuf_fd = (uint32_t)fd };

	assert_int_equal(raw_ioctl(process->kfd, AMDKFD_IOC_GET_DMABUF_INFO, &args), 0);
	assert_int_equal(args.size, SIZE);
	return args;
}

static void a_dmabuf_says_whose_it_is_and_whether_the_cpu_used_it(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo vram = alloc(&pair.owner, PARTITION, RAW_VRAM);
	struct raw_bo host = alloc(&pair.owner, OTHER, RAW_GTT);
	int fd = export(&pair.owner, &vram), host_fd = export(&pair.owner, &host);
	struct kfd_ioctl_get_dmabuf_info_args bad = { .dmabuf_fd = 9999 }, info;

	(void)state;
	info = dmabuf_info(&pair.importer, fd);
	assert_int_equal(info.gpu_id, pair.owner.gpu[PARTITION].gpu_id);
	assert_int_equal(info.flags, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	assert_int_equal(raw_mmap(pair.owner.render[PARTITION], &vram), 0);
	vram.address[0] = 1;
	info = dmabuf_info(&pair.importer, fd);
	assert_int_equal(info.flags, KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
	info = dmabuf_info(&pair.importer, host_fd);
	assert_int_equal(info.gpu_id, pair.owner.gpu[FIRST].gpu_id);
	assert_int_equal(info.flags, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	assert_int_equal(raw_ioctl(pair.importer.kfd, AMDKFD_IOC_GET_DMABUF_INFO, &bad), -EBADF);
	(void)close(fd);
	(void)close(host_fd);
	release(&pair.owner, &vram);
	release(&pair.owner, &host);
	close_pair(&pair);
}

static void what_is_not_gpu_memory_cannot_be_exported(void **state)
{
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pair pair = open_pair();
	struct raw_bo user, unknown;
	int fd;

	(void)state;
	assert_int_equal(raw_alloc(&pair.owner, pair.owner.gpu[FIRST].gpu_id, RAW_USERPTR, SIZE,
				   memory, &user),
			 0);
	assert_int_equal(raw_export(&pair.owner, &user, &fd), -EPERM);
	unknown = user;
	unknown.handle++;
	assert_int_equal(raw_export(&pair.owner, &unknown, &fd), -EINVAL);
	release(&pair.owner, &user);
	close_pair(&pair);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_default, end)
	const struct CMUnitTest tests[] = {
		TEST(an_import_on_the_same_device_is_the_object_itself),
		TEST(amds_driver_gives_imports_the_flags_of_their_buffer),
		TEST(an_import_on_another_device_is_an_object_of_its_own),
		TEST(each_import_by_name_on_another_device_is_an_object_of_its_own),
		TEST(handles_are_the_lowest_free_numbers),
		TEST(a_process_may_hold_an_object_several_times),
		TEST(an_importer_may_map_for_the_cpu_as_long_as_it_holds_the_object),
		TEST(an_importer_can_be_saved_when_the_owner_is_gone),
		TEST(a_freed_import_costs_another_buffer_its_handle),
		TEST(fdinfo_counts_the_holders_of_a_dmabuf),
		TEST(linux_6_1_imports_on_the_same_device_only_and_has_no_handles),
		TEST(gem_handles_are_the_lowest_free_numbers_one_an_object),
		TEST(creation_flags_of_a_buffer_can_be_read_but_not_whether_it_is_public),
		TEST(a_dmabuf_says_whose_it_is_and_whether_the_cpu_used_it),
		TEST(what_is_not_gpu_memory_cannot_be_exported),
	};

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
