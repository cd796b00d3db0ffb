/* SPDX-License-Identifier: GPL-2.0-only */
/* Which interfaces show the id that the process knows and which the real one, after a RESTORE
 * onto a GPU with another id. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contract.h"
#include "criu_op.h"
#include "raw_kfd.h"

/* No GPU of this machine: the process comes from another one. */
#define FOREIGN_ID 0x0bad

static struct criu_image *image_of_nothing;

/* The process has VMs: Linux 6.1 oopses at an UNPAUSE of a process without. */
static void hold_nothing(struct peer *peer)
{
	struct raw_process process;

	(void)peer;
	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(criu_process_info(process.kfd, image_of_nothing), 0);
	EXPECT(criu_checkpoint(process.kfd, image_of_nothing), 0);
	EXPECT(criu_unpause(process.kfd), 0);
}

/* Restores a process that held nothing into this process. */
static void become_foreign(struct raw_process *process)
{
	struct criu_image *image = image_of_nothing = criu_image_new();
	struct kfd_ioctl_criu_args args;

	peer_run(hold_nothing);
	EXPECT(raw_open(process), 0);
	for (int i = 0; i < process->gpus; i++) {
		EXPECT_TRUE(process->gpu[i].gpu_id < FOREIGN_ID ||
			    process->gpu[i].gpu_id >= FOREIGN_ID + RAW_GPUS);
		EXPECT(raw_open_render(&process->gpu[i], &process->render[i]), 0);
		image->devices[i].user_gpu_id = FOREIGN_ID + (uint32_t)i;
		image->devices[i].drm_fd = (uint32_t)process->render[i];
	}
	args = criu_checkpoint_args(image);
	args.op = KFD_CRIU_OP_RESTORE;
	EXPECT(raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &args),
	       KERNEL(bos_required) ? -EINVAL : 0);
	if (KERNEL(bos_required))
		rule_skip("this kernel restores no process without buffers");
	EXPECT(criu_resume(process->kfd, (uint32_t)getpid()), 0);
}

RULE(ids_of_memory_are_those_the_process_knows)
{
	struct raw_process process;
	struct raw_bo bo;
	uint32_t real;

	become_foreign(&process);
	real = process.gpu[0].gpu_id;
	EXPECT(raw_alloc(&process, real, RAW_VRAM, 4096, NULL, &bo), -EINVAL);
	EXPECT(raw_alloc(&process, FOREIGN_ID, RAW_VRAM, 4096, NULL, &bo), 0);
	EXPECT(bo.handle, (uint64_t)FOREIGN_ID << 32);
	EXPECT(raw_map(&process, &bo, real), -EINVAL);
	EXPECT(raw_map(&process, &bo, FOREIGN_ID), 0);
	EXPECT(raw_mmap(process.render[0], &bo), 0);
}

RULE(ids_in_mmap_offsets_are_those_the_kernel_takes)
{
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = FOREIGN_ID,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = 100,
		.ring_size = 4096,
	};
	struct raw_bo mmio, ring, pointers;
	struct raw_process process;
	struct raw_queue queue;
	uint64_t right, wrong = (uint64_t)FOREIGN_ID << 46;

	become_foreign(&process);
	right = (uint64_t)process.gpu[0].gpu_id << 46;
	EXPECT(raw_alloc(&process, FOREIGN_ID, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | RAW_RWX, 4096,
			 NULL, &mmio),
	       0);
	EXPECT(mmio.mmap_offset, (uint64_t)FOREIGN_ID << 46);
	if (KERNEL(user_ids)) {
		wrong = right;
		right = mmio.mmap_offset;
	}
	mmio.mmap_offset = wrong;
	EXPECT(raw_mmap(process.kfd, &mmio), -ENODEV);
	mmio.mmap_offset = right;
	EXPECT(raw_mmap(process.kfd, &mmio), 0);

	EXPECT(raw_alloc(&process, FOREIGN_ID, RAW_GTT, 4096, NULL, &ring), 0);
	EXPECT(raw_map(&process, &ring, FOREIGN_ID), 0);
	EXPECT(raw_alloc(&process, FOREIGN_ID, RAW_GTT, 4096, NULL, &pointers), 0);
	EXPECT(raw_map(&process, &pointers, FOREIGN_ID), 0);
	args.ring_base_address = (uintptr_t)ring.address;
	args.read_pointer_address = (uintptr_t)pointers.address;
	args.write_pointer_address = (uintptr_t)pointers.address + 64;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_CREATE_QUEUE, &args), 0);
	EXPECT(args.doorbell_offset & ~8191ull, 3ull << 62 | (uint64_t)FOREIGN_ID << 46);
	EXPECT(raw_map_doorbell(&process, 3ull << 62 | wrong, &queue), -ENODEV);
	EXPECT(raw_map_doorbell(&process, 3ull << 62 | right, &queue), 0);
}

RULE(ids_are_saved_by_a_second_dump)
{
	struct criu_image *image = criu_image_new();
	struct raw_process process;
	struct raw_bo bo;

	become_foreign(&process);
	EXPECT(raw_alloc(&process, FOREIGN_ID, RAW_GTT, 4096, NULL, &bo), 0);
	EXPECT(criu_process_info(process.kfd, image), 0);
	EXPECT(criu_checkpoint(process.kfd, image), 0);
	for (int i = 0; i < process.gpus; i++) {
		EXPECT(image->devices[i].user_gpu_id, FOREIGN_ID + i);
		EXPECT(image->devices[i].actual_gpu_id, process.gpu[i].gpu_id);
	}
	EXPECT(image->bos[0].gpu_id, FOREIGN_ID);
	EXPECT(criu_unpause(process.kfd), 0);
}
