/* SPDX-License-Identifier: GPL-2.0-only */
/* User-mode queues: creation and its refusals, and packets executed exactly once, also when the
 * process is paused in between. */
#include <errno.h>
#include <string.h>

#include "contract.h"
#include "criu_op.h"
#include "raw_kfd.h"

static int create_with(struct raw_process *process, uint32_t type, uint32_t ring_size,
		       uint32_t percentage, uint32_t priority)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = ring_size,
		.gpu_id = process->gpu[0].gpu_id,
		.queue_type = type,
		.queue_percentage = percentage,
		.queue_priority = priority,
	};
	struct raw_bo ring, pointers;
	int ret;

	ret = raw_alloc_mapped(process, 0, RAW_GTT, 65536, &ring);
	if (ret == 0)
		ret = raw_alloc_mapped(process, 0, RAW_GTT, 4096, &pointers);
	if (ret < 0)
		return ret;
	args.ring_base_address = (uintptr_t)ring.address;
	args.read_pointer_address = (uintptr_t)pointers.address;
	args.write_pointer_address = (uintptr_t)pointers.address + 64;
	return raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_QUEUE, &args);
}

RULE(queue_creation_refuses_what_the_contract_lists)
{
	struct kfd_ioctl_destroy_queue_args destroy = { .queue_id = 99 };
	struct raw_process process;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(create_with(&process, KFD_IOC_QUEUE_TYPE_SDMA, 65536, 100, 7), 0);
	EXPECT(create_with(&process, 9, 65536, 100, 7), -RAW_ENOTSUPP);
	EXPECT(create_with(&process, KFD_IOC_QUEUE_TYPE_SDMA, 60000, 100, 7), -EINVAL);
	EXPECT(create_with(&process, KFD_IOC_QUEUE_TYPE_SDMA, 65536, 101, 7), -EINVAL);
	EXPECT(create_with(&process, KFD_IOC_QUEUE_TYPE_SDMA, 65536, 100, 16), -EINVAL);
	/* Most kernels want the ring to be the whole of a mapped buffer. */
	EXPECT(create_with(&process, KFD_IOC_QUEUE_TYPE_SDMA, 32768, 100, 7),
	       KERNEL(checks_rings) ? -EINVAL : 0);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_DESTROY_QUEUE, &destroy), -EINVAL);
}

RULE(queue_ids_and_doorbells_are_as_the_contract_says)
{
	struct kfd_ioctl_destroy_queue_args destroy = { .queue_id = 0 };
	struct raw_process process;
	struct raw_queue queue[3];

	EXPECT(raw_open_acquired(&process), 0);
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT(raw_create_queue(&process, 0, &queue[i]), 0);
		EXPECT(queue[i].id, i);
		EXPECT(queue[i].doorbell_offset >> 62, 3);
		EXPECT(queue[i].doorbell_offset >> 46 & 0xffff, process.gpu[0].gpu_id);
		EXPECT(queue[i].doorbell_offset % 8, 0);
	}
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_DESTROY_QUEUE, &destroy), 0);
	EXPECT(raw_create_queue(&process, 0, &queue[0]), 0);
	EXPECT(queue[0].id, 0);
}

RULE(queue_copies_to_the_byte)
{
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo vram, host;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_create_queue(&process, 0, &queue), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_VRAM, 65536, &vram), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, 65536, &host), 0);
	memset(host.address, 0x11, 65536);
	memset(vram.address, 0x22, 65536);
	raw_queue_copy(&queue, host.address, vram.address + 4096, 8193);
	raw_queue_ring(&queue);
	EXPECT(raw_queue_wait(&queue), 0);
	EXPECT(vram.address[4095], 0x22);
	EXPECT(vram.address[4096], 0x11);
	EXPECT(vram.address[4096 + 8192], 0x11);
	EXPECT(vram.address[4096 + 8193], 0x22);
}

RULE(queue_executes_each_packet_once_across_pauses)
{
	struct criu_image *image = criu_image_new();
	volatile uint64_t *counter;
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo host;
	uint64_t total = 0, held;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_create_queue(&process, 0, &queue), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, 4096, &host), 0);
	counter = (volatile uint64_t *)host.address;
	*counter = 0;
	for (int i = 0; i < 20; i++) {
		for (int n = 0; n < 1000; n++, total++)
			raw_queue_add(&queue, counter, 1);
		raw_queue_ring(&queue);
		EXPECT(criu_process_info(process.kfd, image), 0);
		/* The pause is complete when the ioctl returns. */
		held = *counter;
		EXPECT(criu_checkpoint(process.kfd, image), 0);
		criu_close_dmabufs(image);
		EXPECT(*counter, held);
		EXPECT(criu_unpause(process.kfd), 0);
		EXPECT(raw_queue_wait(&queue), 0);
		EXPECT(*counter, total);
	}
}

RULE(queue_rests_while_paused_also_when_new)
{
	struct criu_image *image = criu_image_new();
	volatile uint64_t *counter;
	struct raw_process process;
	struct raw_queue queue, late;
	struct raw_bo host;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_create_queue(&process, 0, &queue), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, 4096, &host), 0);
	counter = (volatile uint64_t *)host.address;
	*counter = 0;
	EXPECT(criu_process_info(process.kfd, image), 0);
	EXPECT(image->args.num_objects, 1);
	EXPECT(raw_create_queue(&process, 0, &late), 0);
	raw_queue_add(&queue, counter, 1);
	raw_queue_ring(&queue);
	raw_queue_add(&late, counter, 1);
	raw_queue_ring(&late);
	EXPECT(raw_queue_rests(&queue), 0);
	EXPECT(*counter, 0);
	EXPECT(criu_unpause(process.kfd), 0);
	EXPECT(raw_queue_wait(&queue), 0);
	EXPECT(raw_queue_wait(&late), 0);
	EXPECT(*counter, 2);
}
