/* SPDX-License-Identifier: GPL-2.0-only */
/* PROCESS_INFO, CHECKPOINT and UNPAUSE, called by the process itself: states, counts, buckets and
 * descriptors. RESTORE and tracers have files of their own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contract.h"
#include "criu_op.h"
#include "raw_kfd.h"

/* A process with one buffer of each kind, a queue and an event. */
struct owner {
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo vram, user, mmio, page;
	struct criu_image *image;
};

static void owner_open(struct owner *owner)
{
	struct kfd_ioctl_create_event_args event = { .event_type = KFD_IOC_EVENT_SIGNAL };
	uint32_t id;
	char *memory;

	owner->image = criu_image_new();
	EXPECT(raw_open_acquired(&owner->process), 0);
	id = owner->process.gpu[0].gpu_id;
	EXPECT(raw_alloc_mapped(&owner->process, 0, RAW_VRAM, 12288, &owner->vram), 0);
	EXPECT(raw_create_queue(&owner->process, 0, &owner->queue), 0);
	memory = mmap(NULL, 20480, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(raw_alloc(&owner->process, id, RAW_USERPTR, 20480, memory, &owner->user), 0);
	EXPECT(raw_map(&owner->process, &owner->user, id), 0);
	EXPECT(raw_alloc(&owner->process, id, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | RAW_RWX, 4096,
			 NULL, &owner->mmio),
	       0);
	EXPECT(raw_alloc_mapped(&owner->process, 0, RAW_GTT, 32768, &owner->page), 0);
	event.event_page_offset = owner->page.handle;
	EXPECT(raw_ioctl(owner->process.kfd, AMDKFD_IOC_CREATE_EVENT, &event), 0);
}

RULE(criu_process_info_counts_everything)
{
	struct owner owner;
	uint64_t least;

	owner_open(&owner);
	EXPECT(criu_process_info(owner.process.kfd, owner.image), 0);
	EXPECT(owner.image->args.pid, getpid());
	EXPECT(owner.image->args.num_devices, owner.process.gpus);
	EXPECT(owner.image->args.num_bos, 6);
	EXPECT(owner.image->args.num_objects, 2);
	/* process, devices, BO records of 80 or 272 bytes, a queue, an event */
	least = 8 + 8 * (uint64_t)owner.process.gpus + 6 * 80 + 120 + 64;
	EXPECT_TRUE(owner.image->args.priv_data_size > least);
	EXPECT(criu_unpause(owner.process.kfd), 0);
}

RULE(criu_process_info_of_a_process_that_holds_nothing)
{
	struct criu_image *image = criu_image_new();
	struct raw_process process;

	EXPECT(raw_open(&process), 0);
	EXPECT(criu_process_info(process.kfd, image), 0);
	EXPECT(image->args.num_devices, process.gpus);
	EXPECT(image->args.num_bos, 0);
	EXPECT(image->args.num_objects, 0);
	EXPECT(image->args.priv_data_size, 8 + 8 * process.gpus);
	EXPECT(criu_unpause(process.kfd), 0);
}

RULE(criu_states_are_those_of_the_table)
{
	struct kfd_ioctl_criu_args args = { .op = 5 };
	struct owner owner;

	owner_open(&owner);
	EXPECT(raw_ioctl(owner.process.kfd, AMDKFD_IOC_CRIU_OP, &args), -EINVAL);
	EXPECT(criu_unpause(owner.process.kfd), -EINVAL);
	EXPECT(criu_process_info(owner.process.kfd, owner.image), 0);
	EXPECT(criu_unpause(owner.process.kfd), 0);
	EXPECT(criu_unpause(owner.process.kfd), -EINVAL);
	/* Right counts, right pointers, but not paused. */
	EXPECT(criu_checkpoint(owner.process.kfd, owner.image), -EINVAL);
}

RULE(criu_two_pauses_nest_or_do_not)
{
	struct owner owner;

	owner_open(&owner);
	raw_queue_copy(&owner.queue, owner.vram.address, owner.vram.address + 4096, 64);
	raw_queue_ring(&owner.queue);
	EXPECT(raw_queue_wait(&owner.queue), 0);
	EXPECT(criu_process_info(owner.process.kfd, owner.image), 0);
	EXPECT(criu_process_info(owner.process.kfd, owner.image), 0);
	EXPECT(criu_unpause(owner.process.kfd), 0);
	EXPECT(criu_unpause(owner.process.kfd), -EINVAL);
	/* Where pauses nest, one level of the two is left forever. */
	raw_queue_copy(&owner.queue, owner.vram.address, owner.vram.address + 4096, 64);
	raw_queue_ring(&owner.queue);
	if (!KERNEL(pause_nests)) {
		EXPECT(raw_queue_wait(&owner.queue), 0);
		return;
	}
	EXPECT(raw_queue_rests(&owner.queue), 0);
	EXPECT_TRUE(*owner.queue.read != owner.queue.written);
}

static int checkpoint_with(struct owner *owner, struct kfd_ioctl_criu_args args)
{
	return raw_ioctl(owner->process.kfd, AMDKFD_IOC_CRIU_OP, &args);
}

RULE(criu_checkpoint_wants_exact_counts_and_pointers)
{
	struct kfd_ioctl_criu_args good, args;
	struct owner owner;

	owner_open(&owner);
	EXPECT(criu_process_info(owner.process.kfd, owner.image), 0);
	good = criu_checkpoint_args(owner.image);
	for (int more = -1; more <= 1; more += 2) {
		args = good;
		args.num_devices += (uint32_t)more;
		EXPECT(checkpoint_with(&owner, args), -EINVAL);
		args = good;
		args.num_bos += (uint32_t)more;
		EXPECT(checkpoint_with(&owner, args), -EINVAL);
		args = good;
		args.num_objects += (uint32_t)more;
		EXPECT(checkpoint_with(&owner, args), -EINVAL);
		args = good;
		args.priv_data_size += (uint64_t)more;
		EXPECT(checkpoint_with(&owner, args), -EINVAL);
	}
	args = good;
	args.devices = 0;
	EXPECT(checkpoint_with(&owner, args), -EINVAL);
	args = good;
	args.bos = 0;
	EXPECT(checkpoint_with(&owner, args), -EINVAL);
	args = good;
	args.priv_data = 0;
	EXPECT(checkpoint_with(&owner, args), -EINVAL);
	/* None of that unpaused. */
	EXPECT(checkpoint_with(&owner, good), 0);
	/* What is allocated in between makes the counts wrong. */
	EXPECT(raw_free(&owner.process, &owner.mmio), 0);
	EXPECT(checkpoint_with(&owner, good), -EINVAL);
	EXPECT(criu_unpause(owner.process.kfd), 0);
}

static void expect_buckets(struct owner *owner)
{
	struct criu_image *image = owner->image;
	int vram = criu_find_bo(image, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	int user = criu_find_bo(image, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR);
	int mmio = criu_find_bo(image, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP);
	uint32_t id = owner->process.gpu[0].gpu_id;

	EXPECT_TRUE(vram >= 0 && user >= 0 && mmio >= 0);
	EXPECT(image->bos[vram].addr, (uintptr_t)owner->vram.address);
	EXPECT(image->bos[vram].size, 12288);
	EXPECT(image->bos[vram].gpu_id, id);
	EXPECT(image->bos[vram].offset, owner->vram.mmap_offset);
	EXPECT(image->bos[vram].alloc_flags, RAW_VRAM);
	EXPECT(image->bos[user].dmabuf_fd, KFD_INVALID_FD);
	EXPECT(image->bos[user].size, 20480);
	EXPECT(image->bos[mmio].dmabuf_fd, KFD_INVALID_FD);
	EXPECT(image->bos[mmio].offset, (uint64_t)id << 46);
	for (int i = 0; i < owner->process.gpus; i++) {
		EXPECT(image->devices[i].user_gpu_id, owner->process.gpu[i].gpu_id);
		EXPECT(image->devices[i].actual_gpu_id, owner->process.gpu[i].gpu_id);
	}
}

static void expect_dmabuf(struct owner *owner)
{
	int vram = criu_find_bo(owner->image, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	int fd = (int)owner->image->bos[vram].dmabuf_fd;
	char path[64], link[64] = "";
	struct stat first, second;

	EXPECT(fcntl(fd, F_GETFD), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	EXPECT_TRUE(readlink(path, link, sizeof(link) - 1) > 0);
	EXPECT(strcmp(link, "/dmabuf:"), 0);
	EXPECT(lseek(fd, 0, SEEK_END), 12288);
	EXPECT(lseek(fd, 0, SEEK_SET), 0);
	/* A second CHECKPOINT gives new descriptors, of the same dma-buf if a buffer has one only.
	 */
	EXPECT(fstat(fd, &first), 0);
	EXPECT(criu_checkpoint(owner->process.kfd, owner->image), 0);
	EXPECT_TRUE((int)owner->image->bos[vram].dmabuf_fd != fd);
	EXPECT(fstat((int)owner->image->bos[vram].dmabuf_fd, &second), 0);
	EXPECT(second.st_ino == first.st_ino, KERNEL(one_dmabuf));
}

RULE(criu_checkpoint_fills_buckets_and_gives_dmabufs)
{
	struct owner owner;

	owner_open(&owner);
	EXPECT(criu_process_info(owner.process.kfd, owner.image), 0);
	EXPECT(criu_checkpoint(owner.process.kfd, owner.image), 0);
	expect_buckets(&owner);
	expect_dmabuf(&owner);
	EXPECT(criu_unpause(owner.process.kfd), 0);
}

/* ALLOC needs no address for a VRAM buffer that a program will export. */
RULE(criu_buffers_without_an_address_count_or_not)
{
	struct criu_image *image = criu_image_new();
	struct raw_bo nowhere = { .size = 4096 };
	struct raw_process process;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc_at(&process, process.gpu[0].gpu_id, RAW_VRAM, &nowhere), 0);
	EXPECT(criu_process_info(process.kfd, image), 0);
	EXPECT(image->args.num_bos, KERNEL(addressless));
	EXPECT(criu_unpause(process.kfd), 0);
}

VIOLATION(criu_resume_refuses_strangers)
{
	struct raw_process process;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(criu_resume(process.kfd, 4194303), -ESRCH);
	EXPECT(criu_resume(process.kfd, (uint32_t)getppid()), -ESRCH);
	/* A KFD process that was not restored. */
	EXPECT(criu_resume(process.kfd, (uint32_t)getpid()), -EINVAL);
}
