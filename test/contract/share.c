/* SPDX-License-Identifier: GPL-2.0-only */
/* Buffers that KFD exports and imports: whose object, which dma-buf, which handles. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <amdgpu_drm.h>
#include <drm.h>

#include "buffers.h"
#include "contract.h"
#include "raw_gem.h"

/* The flags of an import, from the same device and from another. AMD's driver gives those of the
 * buffer on the same device. */
#define SAME_FLAGS  0xc0000001u
#define OTHER_FLAGS 0xc0000002u

/* A process with a buffer that it has exported. */
struct owner {
	struct raw_process process;
	struct raw_bo bo;
	int fd;
};

/* Offsets of two devices may be equal by chance: so another buffer comes first on the owner's. */
static struct owner owner_open(void)
{
	struct owner owner;

	EXPECT(raw_open_acquired(&owner.process), 0);
	(void)buffer_new(&owner.process, 0, RAW_VRAM);
	owner.bo = buffer_new_mapped(&owner.process, 0, RAW_VRAM);
	owner.fd = buffer_export(&owner.process, &owner.bo);
	return owner;
}

static void gpu_copy(struct raw_process *process, int gpu, const struct raw_bo *from,
		     const struct raw_bo *to)
{
	struct raw_queue queue;

	EXPECT(raw_create_queue(process, gpu, &queue), 0);
	raw_queue_copy(&queue, from->address, to->address, SIZE);
	raw_queue_ring(&queue);
	EXPECT(raw_queue_wait(&queue), 0);
}

/* What the GPU at @gpu writes to one is seen in the other, and the other way round. */
static void check_shared(struct owner *owner, const struct raw_bo *imported, int gpu)
{
	struct raw_process *process = &owner->process;
	struct raw_bo host = buffer_new_mapped(process, gpu, RAW_GTT);

	EXPECT(raw_map(process, imported, process->gpu[gpu].gpu_id), 0);
	memset(owner->bo.address, 0x5a, SIZE);
	gpu_copy(process, gpu, imported, &host);
	EXPECT(memcmp(host.address, owner->bo.address, SIZE), 0);
	memset(host.address, 0xa5, SIZE / 2);
	gpu_copy(process, gpu, &host, imported);
	EXPECT(memcmp(host.address, owner->bo.address, SIZE), 0);
	EXPECT(raw_unmap(process, imported, process->gpu[gpu].gpu_id), 0);
}

/* Imports on @gpu and compares with the owner's. */
static void check_import(int gpu, bool same_object)
{
	struct owner owner = owner_open();
	struct raw_bo imported = buffer_import(&owner.process, gpu, owner.fd);
	struct kfd_criu_bo_bucket own = buffer_save(&owner.process, &owner.bo);
	struct kfd_criu_bo_bucket other = buffer_save(&owner.process, &imported);

	if (same_object)
		EXPECT(other.alloc_flags, KERNEL(amd) ? RAW_VRAM : SAME_FLAGS);
	else
		EXPECT(other.alloc_flags, OTHER_FLAGS);
	EXPECT(other.size, SIZE);
	EXPECT(other.gpu_id, owner.process.gpu[gpu].gpu_id);
	EXPECT(own.offset == other.offset, same_object);
	EXPECT(inode((int)other.dmabuf_fd) == inode(owner.fd), KERNEL(one_dmabuf));
	EXPECT(inode((int)own.dmabuf_fd) == inode(owner.fd), KERNEL(one_dmabuf));
	check_shared(&owner, &imported, gpu);
}

RULE(share_import_on_the_same_device_is_the_object_itself)
{
	check_import(0, true);
}

RULE(share_partitions_have_the_same_objects_and_offsets)
{
	if (count_partitions() < 2)
		rule_skip("needs partitions");
	check_import(1, true);
}

/* The devices of the machines are in one XGMI hive. Linux 7.2 refuses VRAM, to KFD and to a file
 * with a VM of KFD: amdgpu_dma_buf_map() in amdgpu_dma_buf.c. */
RULE(share_import_on_another_device_is_an_object_of_its_own)
{
	int gpu = other_device();
	struct raw_bo imported;
	struct owner owner;
	uint32_t handle;

	if (KERNEL(one_dmabuf) && KERNEL(hive_imports)) {
		check_import(gpu, false);
		return;
	}
	owner = owner_open();
	EXPECT(raw_import(&owner.process, owner.process.gpu[gpu].gpu_id, owner.fd, owner.bo.address,
			  &imported),
	       -EINVAL);
	EXPECT(raw_gem_import(owner.process.render[gpu], owner.fd, &handle),
	       KERNEL(hive_imports) ? 0 : -EINVAL);
}

/* The number of GPUs whose files take a VRAM buffer of the first GPU. */
static int count_importers(const struct raw_process *process)
{
	return KERNEL(hive_imports) ? process->gpus : count_partitions();
}

RULE(share_export_exists_or_not)
{
	struct owner owner;
	int fd;

	EXPECT(raw_open_acquired(&owner.process), 0);
	owner.bo = buffer_new(&owner.process, 0, RAW_VRAM);
	EXPECT(raw_export(&owner.process, &owner.bo, &fd), KERNEL(exports) ? 0 : -ENOTTY);
}

/* kfd_chardev.c, criu_get_prime_handle(): amdgpu_gem_prime_export() of the object (6.1). */
RULE(share_checkpoints_give_the_same_dmabuf_or_a_new_one)
{
	struct owner owner = owner_open();
	struct kfd_criu_bo_bucket one = buffer_save(&owner.process, &owner.bo);
	struct kfd_criu_bo_bucket other = buffer_save(&owner.process, &owner.bo);

	EXPECT(inode((int)one.dmabuf_fd) == inode((int)other.dmabuf_fd), KERNEL(one_dmabuf));
	EXPECT(one.offset, other.offset);
}

/* amdgpu_dma_buf.c, amdgpu_gem_prime_import(): a file of the same PCI device gets the object
 * itself, with its mmap offset, also from another partition. */
RULE(share_a_file_of_the_device_tells_the_offset_of_any_dmabuf)
{
	struct owner owner = owner_open();
	struct kfd_criu_bo_bucket record = buffer_save(&owner.process, &owner.bo);
	uint64_t offset;

	for (int i = 0; i < count_importers(&owner.process); i++) {
		int render = owner.process.render[i];

		EXPECT(raw_gem_offset(render, buffer_name(render, (int)record.dmabuf_fd), &offset),
		       0);
		EXPECT(offset == record.offset, i < count_partitions());
	}
}

/* dma-buf.c, dma_buf_llseek(): only the size can be asked for. */
RULE(share_a_dmabuf_has_a_size_and_no_position)
{
	int fd = owner_open().fd;

	EXPECT(lseek(fd, 0, SEEK_END), SIZE);
	EXPECT(lseek(fd, 0, SEEK_SET), 0);
	EXPECT(lseek(fd, 0, SEEK_CUR), -1);
	EXPECT(errno, EINVAL);
	EXPECT(lseek(fd, 1, SEEK_SET), -1);
	EXPECT(errno, EINVAL);
}

RULE(share_imports_have_the_lowest_free_numbers)
{
	struct owner owner = owner_open();
	struct raw_process *process = &owner.process;
	struct raw_bo own[3], imports[3];

	for (uint32_t i = 0; i < 3; i++) {
		own[i] = buffer_new(process, 0, RAW_GTT);
		EXPECT((uint32_t)own[i].handle, 2 * i + 2);
		imports[i] = buffer_import(process, 0, owner.fd);
		EXPECT((uint32_t)imports[i].handle, 2 * i + 3);
	}
	buffer_free(process, &own[1]);
	buffer_free(process, &imports[0]);
	EXPECT((uint32_t)buffer_import(process, 0, owner.fd).handle, 3);
	EXPECT((uint32_t)buffer_new(process, 0, RAW_GTT).handle, 4);
}

/* Two fragments of one block: each open creates a separate import with its own address. */
RULE(share_a_process_may_hold_an_object_several_times)
{
	struct owner owner = owner_open();
	struct raw_process *process = &owner.process;
	struct raw_bo first = buffer_import(process, 0, owner.fd);
	struct raw_bo second = buffer_import(process, 0, owner.fd), same;
	uint32_t id = process->gpu[0].gpu_id;

	EXPECT(raw_import(process, id, owner.fd, first.address, &same), 0);
	EXPECT(raw_map(process, &first, id), 0);
	EXPECT(raw_map(process, &second, id), 0);
	/* amdgpu_vm.c: amdgpu_vm_bo_map() refuses overlapping mappings */
	EXPECT(raw_map(process, &same, id), -EINVAL);
	EXPECT(raw_unmap(process, &first, id), 0);
	EXPECT(raw_map(process, &same, id), 0);
	EXPECT(raw_free(process, &same), -EBUSY);
	EXPECT(raw_unmap(process, &same, id), 0);
	buffer_free(process, &same);
}

static int lent_fd;

/* import_obj_create() allows the importer's file, amdgpu_amdkfd_gpuvm_free_memory_of_gpu() revokes
 * it. */
static void importer_main(struct peer *peer)
{
	struct raw_process process;
	struct raw_bo imported;
	int other;

	(void)peer;
	EXPECT(raw_open_acquired(&process), 0);
	imported = buffer_import(&process, 0, lent_fd);
	imported.mmap_offset = buffer_save(&process, &imported).offset;
	EXPECT(raw_mmap(process.render[0], &imported), 0);
	EXPECT(imported.address[17], 0x33);
	imported.address[18] = 0x44;
	EXPECT(raw_open_render(&process.gpu[0], &other), 0);
	(void)buffer_name(other, lent_fd);
	buffer_free(&process, &imported);
	EXPECT(raw_mmap(process.render[0], &imported), -EACCES);
}

RULE(share_an_importer_maps_for_the_cpu_as_long_as_it_holds_the_object)
{
	struct owner owner = owner_open();

	owner.bo.address[17] = 0x33;
	lent_fd = owner.fd;
	peer_run(importer_main);
	EXPECT(owner.bo.address[18], 0x44);
}

/* The exporter deletes the handle that both use, but the importer already has the dma-buf. */
RULE(share_an_import_can_be_saved_when_its_exporter_is_freed)
{
	struct owner owner = owner_open();
	struct raw_bo imported = buffer_import(&owner.process, 0, owner.fd);
	struct kfd_criu_bo_bucket bucket;

	EXPECT(raw_unmap(&owner.process, &owner.bo, owner.process.gpu[0].gpu_id), 0);
	buffer_free(&owner.process, &owner.bo);
	bucket = buffer_save(&owner.process, &imported);
	EXPECT(bucket.offset, owner.bo.mmap_offset);
	EXPECT(inode((int)bucket.dmabuf_fd) == inode(owner.fd), KERNEL(one_dmabuf));
}

/* An import that is freed deletes the exporter's handle in KFD's own file; the exporter deletes the
 * number again when another buffer has it. */
RULE(share_a_freed_import_costs_another_buffer_its_handle)
{
	struct owner owner = owner_open();
	struct raw_process *process = &owner.process;
	struct raw_bo imported = buffer_import(process, 0, owner.fd), victim, late;
	struct kfd_criu_bo_bucket one = { 0 }, other;
	int fd, handles = KERNEL(one_dmabuf);

	buffer_free(process, &imported);
	fd = buffer_export(process, &owner.bo);
	EXPECT(inode(fd) == inode(owner.fd), KERNEL(exports));
	victim = buffer_new(process, 0, RAW_VRAM);
	EXPECT(raw_unmap(process, &owner.bo, process->gpu[0].gpu_id), 0);
	buffer_free(process, &owner.bo);
	if (KERNEL(exports))
		EXPECT(raw_export(process, &victim, &fd), handles ? -ENOENT : 0);
	EXPECT(buffer_try_save(process, &victim, &one), handles ? -ENOENT : 0);
	/* A later buffer gets the number, and is saved as the victim. */
	late = buffer_new(process, 0, RAW_VRAM);
	one = buffer_save(process, &victim);
	other = buffer_save(process, &late);
	EXPECT(inode((int)one.dmabuf_fd) == inode((int)other.dmabuf_fd), handles);
	EXPECT_TRUE(one.offset != other.offset);
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

/* The same when it is `wanted`, or after ten seconds. TTM frees what a fence holds in a worker. */
static long holders_left(int fd, long wanted)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	long count = holders(fd);

	for (int i = 0; i < 10000 && count != wanted; i++) {
		(void)nanosleep(&step, NULL);
		count = holders(fd);
	}
	return count;
}

RULE(share_fdinfo_counts_the_holders_of_a_dmabuf)
{
	struct owner owner = owner_open();
	int render = owner.process.render[0], more, last = count_importers(&owner.process) - 1;
	struct raw_bo imported, foreign;
	uint32_t handle;

	if (!KERNEL(one_dmabuf))
		rule_skip("KFD of this kernel has no file of its own");
	/* the object, KFD's own file, the buffer of KFD, the descriptor */
	EXPECT(holders(owner.fd), 4);
	imported = buffer_import(&owner.process, 0, owner.fd);
	EXPECT(holders(owner.fd), 5);
	handle = buffer_name(render, owner.fd);
	EXPECT(holders(owner.fd), 6);
	EXPECT(raw_gem_close(render, handle), 0);
	EXPECT(holders(owner.fd), 5);
	more = dup(owner.fd);
	EXPECT(holders(owner.fd), 6);
	(void)close(more);
	if (last >= count_partitions()) {
		/* its attachment, its object, KFD's file on its device, its buffer of KFD */
		foreign = buffer_import(&owner.process, last, owner.fd);
		EXPECT(holders(owner.fd), 9);
		buffer_free(&owner.process, &foreign);
		EXPECT(holders_left(owner.fd, 5), 5);
	}
	/* an import that is freed also deletes the handle in KFD's own file */
	buffer_free(&owner.process, &imported);
	EXPECT(holders_left(owner.fd, 2), 2);
}

/* By a share handle of AMD's out-of-tree driver, each of them. */
RULE(share_each_import_by_name_on_another_device_is_an_object_of_its_own)
{
	struct raw_bo imports[2] = { { .size = SIZE }, { .size = SIZE } };
	struct owner owner = owner_open();
	struct raw_process *process = &owner.process;
	uint32_t name[4];
	int gpu;

	if (!KERNEL(amd)) {
		EXPECT(raw_ipc_export(process, &owner.bo, name), -ENOTTY);
		return;
	}
	gpu = other_device();
	EXPECT(raw_ipc_export(process, &owner.bo, name), 0);
	/* the object, KFD's own file, the buffer of KFD, the name, the descriptor */
	EXPECT(holders(owner.fd), 5);
	for (int i = 0; i < 2; i++) {
		imports[i].address =
			mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(raw_ipc_import(process, process->gpu[gpu].gpu_id, name, &imports[i]), 0);
		/* its attachment, its buffer of KFD */
		EXPECT(holders(owner.fd), 7 + 2 * i);
	}
	EXPECT_TRUE(imports[0].mmap_offset != imports[1].mmap_offset);
	check_shared(&owner, &imports[0], gpu);
	check_shared(&owner, &imports[1], gpu);
	buffer_free(process, &imports[0]);
	buffer_free(process, &imports[1]);
	EXPECT(holders_left(owner.fd, 5), 5);
}

struct change_handle {
	uint32_t handle, new_handle;
};

RULE(share_gem_handles_are_the_lowest_free_numbers_one_an_object)
{
	struct change_handle change = { 1, 9 };
	struct raw_process process;
	int fds[3], render;

	EXPECT(raw_open_acquired(&process), 0);
	render = process.render[0];
	for (int i = 0; i < 3; i++) {
		struct raw_bo bo = buffer_new(&process, 0, RAW_VRAM);
		uint64_t offset;

		fds[i] = buffer_export(&process, &bo);
		EXPECT(buffer_name(render, fds[i]), i + 1);
		EXPECT(raw_gem_offset(render, (uint32_t)i + 1, &offset), 0);
		EXPECT(offset, bo.mmap_offset);
	}
	EXPECT(buffer_name(render, fds[1]), 2);
	EXPECT(raw_gem_close(render, 1), 0);
	EXPECT(raw_gem_close(render, 2), 0);
	EXPECT(buffer_name(render, fds[1]), 1);
	EXPECT(buffer_name(render, fds[0]), 2);
	EXPECT(raw_ioctl(render, DRM_IOWR(0xd2, struct change_handle), &change), -EINVAL);
}

/* Another file of the device reads what the first one has noted. */
RULE(share_metadata_are_those_of_the_object)
{
	struct raw_process process;
	uint32_t handle, other, mark = 0;
	struct raw_bo bo;
	int file;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_open_render(&process.gpu[0], &file), 0);
	bo = buffer_new_mapped(&process, 0, RAW_VRAM);
	handle = buffer_name_bo(&process, 0, &bo);
	EXPECT(raw_gem_read_mark(process.render[0], handle, &mark), -ENODATA);
	EXPECT(raw_gem_mark(process.render[0], handle, 0x1234567), 0);
	other = buffer_name(file, buffer_export(&process, &bo));
	EXPECT(raw_gem_read_mark(file, other, &mark), 0);
	EXPECT(mark, 0x1234567);
	EXPECT(raw_gem_close(process.render[0], handle), 0);
	EXPECT(raw_gem_read_mark(process.render[0], handle, &mark), -ENOENT);
	EXPECT(raw_gem_read_mark(file, other, &mark), 0);
}

/* The flags of a KFD buffer, as its importers read them. */
static uint64_t gem_flags(struct raw_process *process, uint32_t flags)
{
	struct drm_amdgpu_gem_create_in info = { 0 };
	struct drm_amdgpu_gem_op args = { .op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
					  .value = (uintptr_t)&info };
	struct raw_bo bo = buffer_new(process, 0, flags | RAW_RWX);

	args.handle = buffer_name_bo(process, 0, &bo);
	EXPECT(raw_ioctl(process->render[0], DRM_IOCTL_AMDGPU_GEM_OP, &args), 0);
	return info.domain_flags;
}

RULE(share_creation_flags_can_be_read_but_not_whether_it_is_public)
{
	const uint32_t vram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM, host = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
	const uint64_t standard = AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE;
	const uint64_t cleared = standard | AMDGPU_GEM_CREATE_VRAM_CLEARED;
	struct raw_process process;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(gem_flags(&process, host), standard);
	EXPECT(gem_flags(&process, vram), cleared);
	EXPECT(gem_flags(&process, vram | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC), cleared);
	EXPECT(gem_flags(&process, host | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT), standard | 1 << 13);
	EXPECT(gem_flags(&process, vram | KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED), cleared | 1 << 14);
	EXPECT(gem_flags(&process, vram | 1 << 24), cleared | 1 << 15);
	EXPECT(gem_flags(&process, vram | 1 << 23), cleared | AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS);
}

static struct kfd_ioctl_get_dmabuf_info_args dmabuf_info(struct raw_process *process, int fd)
{
	struct kfd_ioctl_get_dmabuf_info_args args = { .dmabuf_fd = (uint32_t)fd };

	EXPECT(raw_ioctl(process->kfd, AMDKFD_IOC_GET_DMABUF_INFO, &args), 0);
	EXPECT(args.size, SIZE);
	return args;
}

/* Host memory belongs to no partition, so for a GPU that can have partitions KFD names the first
 * GPU that the process sees (amdgpu_bo_create() in amdgpu_object.c, Linux 6.12). */
static uint32_t gpu_of_host_memory(const struct raw_process *process, int gpu)
{
	return process->gpu[process->gpu[gpu].gfx_target_version >= 90400 ? 0 : gpu].gpu_id;
}

RULE(share_a_dmabuf_says_whose_it_is_and_whether_the_cpu_used_it)
{
	struct kfd_ioctl_get_dmabuf_info_args bad = { .dmabuf_fd = 9999 }, info;
	struct raw_process process;
	struct raw_bo vram, host;
	int fd, last;

	EXPECT(raw_open_acquired(&process), 0);
	last = process.gpus - 1;
	vram = buffer_new(&process, last, RAW_VRAM);
	host = buffer_new(&process, last, RAW_GTT);
	fd = buffer_export(&process, &vram);
	info = dmabuf_info(&process, fd);
	EXPECT(info.gpu_id, process.gpu[last].gpu_id);
	EXPECT(info.flags, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	EXPECT(raw_mmap(process.render[last], &vram), 0);
	vram.address[0] = 1;
	info = dmabuf_info(&process, fd);
	EXPECT(info.flags, KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
	info = dmabuf_info(&process, buffer_export(&process, &host));
	EXPECT(info.gpu_id, gpu_of_host_memory(&process, last));
	EXPECT(info.flags, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_GET_DMABUF_INFO, &bad), -EBADF);
}

RULE(share_what_is_not_gpu_memory_cannot_be_exported)
{
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct raw_process process;
	struct raw_bo user;
	int fd;

	if (!KERNEL(exports))
		rule_skip("this kernel has no EXPORT_DMABUF");
	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc(&process, process.gpu[0].gpu_id, RAW_USERPTR, SIZE, memory, &user), 0);
	EXPECT(raw_export(&process, &user, &fd), -EPERM);
	user.handle++;
	if (!KERNEL(unchecked_handles))
		EXPECT(raw_export(&process, &user, &fd), -EINVAL);
}
