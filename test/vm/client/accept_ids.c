/* SPDX-License-Identifier: GPL-2.0-only */
/* Which interfaces show the id that the process knows and which the real one, after a RESTORE
 * onto a GPU with another id; and GPUs that are hidden from a process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "accept.h"
#include "accept_criu.h"
#include "raw_kfd.h"

/* No GPU of this machine: the process comes from another one. */
#define FOREIGN_ID 0x0bad

/* An image of a process that held nothing, which is restored into this process. */
static int become_foreign(struct raw_process *process)
{
	struct kfd_ioctl_criu_args args;
	struct criu_image *image = criu_image_new();

	EXPECT(raw_open(process), 0);
	EXPECT(criu_process_info(process->kfd, image), 0);
	EXPECT(criu_checkpoint(process->kfd, image), 0);
	EXPECT(criu_unpause(process->kfd), 0);
	for (int i = 0; i < process->gpus; i++) {
		EXPECT_TRUE(process->gpu[i].gpu_id < FOREIGN_ID ||
			    process->gpu[i].gpu_id >= FOREIGN_ID + RAW_GPUS);
		EXPECT(raw_open_render(&process->gpu[i], &process->render[i]), 0);
		image->devices[i].user_gpu_id = FOREIGN_ID + (uint32_t)i;
		image->devices[i].drm_fd = (uint32_t)process->render[i];
	}
	args = criu_checkpoint_args(image);
	args.op = KFD_CRIU_OP_RESTORE;
	EXPECT(raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &args), 0);
	EXPECT(criu_resume(process->kfd, (uint32_t)getpid()), 0);
	return 0;
}

static int test_memory_ids(void)
{
	struct kfd_process_device_apertures apertures[RAW_GPUS] = { 0 };
	struct kfd_ioctl_get_process_apertures_new_args args = {
		.kfd_process_device_apertures_ptr = (uintptr_t)apertures,
		.num_of_nodes = RAW_GPUS,
	};
	struct raw_process process;
	struct raw_bo bo;
	uint32_t real;

	EXPECT(become_foreign(&process), 0);
	real = process.gpu[0].gpu_id;
	EXPECT(raw_alloc(&process, real, RAW_VRAM, 4096, NULL, &bo), -EINVAL);
	EXPECT(raw_alloc(&process, FOREIGN_ID, RAW_VRAM, 4096, NULL, &bo), 0);
	EXPECT(bo.handle, (uint64_t)FOREIGN_ID << 32);
	EXPECT(raw_map(&process, &bo, real), -EINVAL);
	EXPECT(raw_map(&process, &bo, FOREIGN_ID), 0);
	EXPECT(raw_mmap(process.render[0], &bo), 0);
	args.num_of_nodes = (uint32_t)process.gpus;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args), 0);
	EXPECT(apertures[0].gpu_id, real);
	return 0;
}

static int test_mmap_ids(void)
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
	uint64_t real;

	EXPECT(become_foreign(&process), 0);
	real = (uint64_t)process.gpu[0].gpu_id << 46;
	EXPECT(raw_alloc(&process, FOREIGN_ID, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | RAW_RWX, 4096,
			 NULL, &mmio),
	       0);
	EXPECT(mmio.mmap_offset, (uint64_t)FOREIGN_ID << 46);
	EXPECT(raw_mmap(process.kfd, &mmio), -ENODEV);
	mmio.mmap_offset = real;
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
	EXPECT(raw_map_doorbell(&process, args.doorbell_offset, &queue), -ENODEV);
	EXPECT(raw_map_doorbell(&process, 3ull << 62 | real, &queue), 0);
	return 0;
}

static int test_second_dump(void)
{
	struct criu_image *image = criu_image_new();
	struct raw_process process;
	struct raw_bo bo;

	EXPECT(become_foreign(&process), 0);
	EXPECT(raw_alloc(&process, FOREIGN_ID, RAW_GTT, 4096, NULL, &bo), 0);
	EXPECT(criu_process_info(process.kfd, image), 0);
	EXPECT(criu_checkpoint(process.kfd, image), 0);
	for (int i = 0; i < process.gpus; i++) {
		EXPECT(image->devices[i].user_gpu_id, FOREIGN_ID + i);
		EXPECT(image->devices[i].actual_gpu_id, process.gpu[i].gpu_id);
	}
	EXPECT(image->bos[0].gpu_id, FOREIGN_ID);
	EXPECT(criu_unpause(process.kfd), 0);
	return 0;
}

static int hidden_gpu_main(struct peer *peer)
{
	struct criu_image *image = criu_image_new();
	struct raw_gpu gpus[RAW_GPUS];
	struct raw_process process;
	int count, hidden, fd;
	long gone, minor;
	char path[128];

	EXPECT(peer_receive(peer, &gone), 0);
	EXPECT(peer_receive(peer, &minor), 0);
	EXPECT(raw_list_gpus(gpus, &count, &hidden), 0);
	EXPECT(hidden, 1);
	/* Nothing vanishes: it only cannot be read. */
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%ld/mem_banks/0/properties",
		 gone);
	EXPECT(access(path, F_OK), 0);
	EXPECT(raw_open_render(&(struct raw_gpu){ .render_minor = (int)minor }, &fd), -EPERM);
	EXPECT(raw_open(&process), 0);
	if (count == 0) {
		EXPECT(criu_process_info(process.kfd, image), -ENODEV);
		return 0;
	}
	EXPECT(criu_process_info(process.kfd, image), 0);
	EXPECT(image->args.num_devices, count);
	EXPECT(criu_unpause(process.kfd), 0);
	EXPECT(raw_open_render(&gpus[0], &process.render[0]), 0);
	EXPECT(raw_acquire(&process, gpus[0].gpu_id, process.render[0]), 0);
	return 0;
}

static int test_hidden(void)
{
	struct raw_gpu gpus[RAW_GPUS];
	struct peer peer;
	int count, status;

	EXPECT(raw_list_gpus(gpus, &count, NULL), 0);
	EXPECT(peer_start(hidden_gpu_main, &peer), 0);
	EXPECT(sim_write("hidden", "0\n"), 0);
	EXPECT(peer_send(&peer, gpus[0].node), 0);
	EXPECT(peer_send(&peer, gpus[0].render_minor), 0);
	status = peer_join(&peer);
	EXPECT(sim_write("hidden", "\n"), 0);
	EXPECT(status, 0);
	EXPECT(raw_list_gpus(gpus, &count, &status), 0);
	EXPECT(status, 0);
	return 0;
}

static const struct accept_test tests[] = {
	{ "ids_of_memory_are_those_the_process_knows", test_memory_ids, false },
	{ "ids_in_mmap_offsets_are_real_ones", test_mmap_ids, false },
	{ "ids_are_saved_by_a_second_dump", test_second_dump, false },
	{ "hidden_gpus_give_eperm_and_do_not_count", test_hidden, false },
	{ 0 },
};

const struct accept_group accept_ids_group = { "ids", tests };
