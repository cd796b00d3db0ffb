/* SPDX-License-Identifier: GPL-2.0-only */
/* RESTORE and RESUME: a process is saved by itself and comes back in another one, on the same GPUs
 * and on others, and the refusals on the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffers.h"
#include "contract.h"
#include "criu_op.h"
#include "raw_kfd.h"

#define CONTENT_BYTES 65536
#define BEFORE_PAUSE  700
#define WHILE_PAUSED  300
#define AFTERWARDS    200

/* All that goes from one process to the next, in memory that they share. */
struct saved {
	struct raw_queue queue;
	struct raw_bo counter, vram, user;
	char *svm; /* a page that has attributes only, no buffer; NULL without SVM */
	char contents[CRIU_BOS][CONTENT_BYTES];
	struct criu_image image;
	/* Added to each saved GPU's position to get the one it is restored on. */
	int rotation;
};

static struct saved *saved;

static void saved_new(void)
{
	saved = mmap(NULL, sizeof(*saved), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	EXPECT_TRUE(saved != MAP_FAILED);
}

static void saved_share_svm(struct raw_process *process)
{
	struct kfd_ioctl_svm_attribute access = {
		.type = KFD_IOCTL_SVM_ATTR_ACCESS,
		.value = process->gpu[0].gpu_id,
	};

	saved->svm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(raw_svm(process, saved->svm, 4096, KFD_IOCTL_SVM_OP_SET_ATTR, &access, 1), 0);
	memset(saved->svm, 0x5e, 4096);
	/* The engine reaches it from now on. */
	raw_queue_copy(&saved->queue, saved->svm, saved->counter.address, 4096);
	raw_queue_ring(&saved->queue);
	EXPECT(raw_queue_wait(&saved->queue), 0);
	EXPECT(saved->counter.address[4095], 0x5e);
}

static void saved_add(int count)
{
	for (int i = 0; i < count; i++)
		raw_queue_add(&saved->queue, (volatile uint64_t *)saved->counter.address, 1);
	raw_queue_ring(&saved->queue);
}

/* The process that is saved: it runs, is paused in the middle, and ends. */
static void source_main(struct peer *peer)
{
	struct raw_process process;
	char *memory;
	uint32_t id;

	(void)peer;
	EXPECT(raw_open_acquired(&process), 0);
	id = process.gpu[0].gpu_id;
	EXPECT(raw_create_queue(&process, 0, &saved->queue), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, 4096, &saved->counter), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_VRAM, 8192, &saved->vram), 0);
	memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(raw_alloc(&process, id, RAW_USERPTR, 8192, memory, &saved->user), 0);
	EXPECT(raw_map(&process, &saved->user, id), 0);
	if (KERNEL(svm))
		saved_share_svm(&process);
	memset(saved->vram.address, 0x3c, 8192);
	memset(saved->user.address, 0x4d, 8192);
	memset(saved->counter.address, 0, 4096);
	saved_add(BEFORE_PAUSE);
	EXPECT(criu_process_info(process.kfd, &saved->image), 0);
	saved_add(WHILE_PAUSED);
	EXPECT(criu_checkpoint(process.kfd, &saved->image), 0);
	for (uint32_t i = 0; i < saved->image.args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bucket = &saved->image.bos[i];

		EXPECT_TRUE(bucket->size <= CONTENT_BYTES);
		memcpy(saved->contents[i], (void *)(uintptr_t)bucket->addr, bucket->size);
	}
}

static void source_save(void)
{
	saved_new();
	peer_run(source_main);
}

static void target_open(struct raw_process *process)
{
	struct criu_image *image = &saved->image;
	int gpus;

	EXPECT(raw_open(process), 0);
	gpus = process->gpus;
	EXPECT(image->args.num_devices, gpus);
	for (int i = 0; i < gpus; i++) {
		EXPECT(raw_open_render(&process->gpu[i], &process->render[i]), 0);
		image->devices[i].actual_gpu_id = process->gpu[(i + saved->rotation) % gpus].gpu_id;
	}
}

static struct kfd_criu_device_bucket *target_device(uint32_t user_gpu_id)
{
	struct kfd_criu_device_bucket *device = saved->image.devices;

	while (device->user_gpu_id != user_gpu_id)
		device++;
	return device;
}

/* Gives the buffers their mappings and contents back. */
static void target_fill(void)
{
	for (uint32_t i = 0; i < saved->image.args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bucket = &saved->image.bos[i];
		bool user = bucket->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
		int flags = user ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
		int fd = user ? -1 : (int)target_device(bucket->gpu_id)->drm_fd;
		void *wanted = (void *)(uintptr_t)bucket->addr;
		void *at = mmap(wanted, bucket->size, PROT_READ | PROT_WRITE,
				flags | MAP_FIXED_NOREPLACE, fd,
				user ? 0 : (off_t)bucket->restored_offset);

		EXPECT_TRUE(at == wanted);
		/* Nothing may look right before it was uploaded. */
		EXPECT_TRUE(memcmp(at, saved->contents[i], bucket->size) != 0);
		memcpy(at, saved->contents[i], bucket->size);
	}
	if (!saved->svm)
		return;
	/* The range is not one of the buffers: a checkpoint has it with the process's memory. */
	EXPECT_TRUE(mmap(saved->svm, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == saved->svm);
	memset(saved->svm, 0x6f, 4096);
}

static void target_expect_dmabufs(void)
{
	for (uint32_t i = 0; i < saved->image.args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bucket = &saved->image.bos[i];

		if (bucket->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
			EXPECT(bucket->dmabuf_fd, KFD_INVALID_FD);
			continue;
		}
		EXPECT(fcntl((int)bucket->dmabuf_fd, F_GETFD), 0);
		EXPECT(lseek((int)bucket->dmabuf_fd, 0, SEEK_END), (long long)bucket->size);
	}
}

static void target_map_doorbell(struct raw_process *process)
{
	uint32_t id = process->gpu[0].gpu_id;
	uint64_t slice = KERNEL(user_ids) ? id : target_device(id)->actual_gpu_id;

	EXPECT(raw_map_doorbell(process,
				3ull << 62 | slice << 46 | (saved->queue.doorbell_offset & 8191),
				&saved->queue),
	       0);
}

static void target_go_on(struct raw_process *process)
{
	volatile uint64_t *counter = (volatile uint64_t *)saved->counter.address;
	struct raw_bo more;

	/* What was in the ring runs without a new doorbell. */
	EXPECT(raw_queue_wait(&saved->queue), 0);
	EXPECT(*counter, BEFORE_PAUSE + WHILE_PAUSED);
	target_map_doorbell(process);
	saved_add(AFTERWARDS);
	raw_queue_copy(&saved->queue, saved->user.address, saved->vram.address, 4096);
	raw_queue_copy(&saved->queue, saved->vram.address + 4096, saved->user.address + 4096, 4096);
	raw_queue_ring(&saved->queue);
	EXPECT(raw_queue_wait(&saved->queue), 0);
	EXPECT(*counter, BEFORE_PAUSE + WHILE_PAUSED + AFTERWARDS);
	EXPECT(saved->vram.address[0], 0x4d);
	EXPECT(saved->user.address[8191], 0x3c);
	if (saved->svm) {
		raw_queue_copy(&saved->queue, saved->svm, saved->vram.address, 4096);
		raw_queue_ring(&saved->queue);
		EXPECT(raw_queue_wait(&saved->queue), 0);
		EXPECT(saved->vram.address[4095], 0x6f);
	}
	/* The process goes on with the ids that it knows. */
	EXPECT(raw_alloc(process, process->gpu[0].gpu_id, RAW_VRAM, 4096, NULL, &more), 0);
	EXPECT(more.handle >> 32, process->gpu[0].gpu_id);
	EXPECT(raw_free(process, &more), 0);
}

static void target_main(struct peer *peer)
{
	struct raw_process process;
	long go;

	target_open(&process);
	EXPECT(criu_restore(&process, &saved->image), 0);
	target_expect_dmabufs();
	criu_close_dmabufs(&saved->image);
	EXPECT(criu_unpause(process.kfd), -EINVAL);
	target_fill();
	EXPECT(raw_queue_rests(&saved->queue), 0);
	peer_send(peer, 0);
	EXPECT(peer_receive(peer, &go), 0);
	target_go_on(&process);
}

/* RESUME takes memory that is not there for success (amdgpu_amdkfd_gpuvm.c:
 * update_invalid_user_pages(), Linux 6.12 and 7.3), and the queue faults when it comes to it. */
static void memoryless_main(struct peer *peer)
{
	volatile uint64_t *counter = (volatile uint64_t *)saved->counter.address;
	struct raw_process process;
	long go;

	target_open(&process);
	EXPECT(criu_restore(&process, &saved->image), 0);
	target_fill();
	target_map_doorbell(&process);
	EXPECT(mprotect(saved->user.address, 8192, PROT_NONE), 0);
	peer_send(peer, 0);
	EXPECT(peer_receive(peer, &go), 0);
	EXPECT(raw_queue_wait(&saved->queue), 0);
	EXPECT(*counter, BEFORE_PAUSE + WHILE_PAUSED);
	raw_queue_copy(&saved->queue, saved->user.address, saved->vram.address, 4096);
	raw_queue_ring(&saved->queue);
	for (int i = 0; i < 20; i++)
		EXPECT(raw_queue_rests(&saved->queue), 0);
	EXPECT_TRUE(*saved->queue.read != saved->queue.written);
	EXPECT(saved->vram.address[0], 0x3c);
}

static void restore_and_resume(void (*after)(struct peer *peer), int rotation)
{
	struct peer target;
	long number;
	int kfd;

	source_save();
	saved->rotation = rotation;
	peer_start(after, &target);
	EXPECT(peer_receive(&target, &number), 0);
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	EXPECT_TRUE(kfd >= 0);
	EXPECT(criu_resume(kfd, (uint32_t)target.pid), 0);
	peer_send(&target, 0);
	EXPECT(peer_join(&target), 0);
}

RULE(restore_brings_a_process_back_and_resume_runs_it_once)
{
	restore_and_resume(target_main, 0);
}

VIOLATION(resume_succeeds_without_memory_and_the_queue_faults)
{
	restore_and_resume(memoryless_main, 0);
}

RULE(restore_works_on_other_gpus_than_before)
{
	restore_and_resume(target_main, other_device());
}

static void refused_main(struct peer *peer)
{
	struct raw_process process;

	(void)peer;
	target_open(&process);
	EXPECT(criu_restore(&process, &saved->image), -EINVAL);
}

/* A copy engine's queue has one doorbell, which differs between the partitions of a device
 * (allocate_doorbell() in kfd_device_queue_manager.c, Linux 6.12 and 7.3). */
RULE(restore_refuses_a_copy_queue_on_another_partition)
{
	if (count_partitions() < 2)
		rule_skip("needs partitions");
	source_save();
	saved->rotation = 1;
	peer_run(refused_main);
}

static void resumed_main(struct peer *peer)
{
	struct raw_process process;
	long go;

	target_open(&process);
	EXPECT(criu_restore(&process, &saved->image), 0);
	EXPECT(criu_restore(&process, &saved->image), -EINVAL);
	target_fill();
	peer_send(peer, 0);
	EXPECT(peer_receive(peer, &go), 0);
}

VIOLATION(restore_and_resume_work_only_once)
{
	struct peer target;
	long number;
	int kfd;

	source_save();
	peer_start(resumed_main, &target);
	EXPECT(peer_receive(&target, &number), 0);
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	EXPECT_TRUE(kfd >= 0);
	EXPECT(criu_resume(kfd, (uint32_t)target.pid), 0);
	EXPECT(criu_resume(kfd, (uint32_t)target.pid), -EINVAL);
	peer_send(&target, 0);
	EXPECT(peer_join(&target), 0);
}

enum spoil {
	SPOIL_FEWER_DEVICES,
	SPOIL_MORE_DEVICES,
	SPOIL_NO_DEVICES,
	SPOIL_NO_BOS,
	SPOIL_NO_PRIV,
	SPOIL_USER_ID_0,
	SPOIL_UNKNOWN_GPU,
	SPOIL_BAD_FILE,
	SPOIL_NOT_A_RENDER_NODE,
	SPOIL_VERSION,
	SPOIL_SHORT_PRIV,
	SPOIL_LONG_PRIV,
	SPOIL_END,
};

static int used_render_fd = -1;

static void spoil_args(enum spoil spoil, int kfd, struct kfd_ioctl_criu_args *args)
{
	struct criu_image *image = &saved->image;

	switch (spoil) {
	case SPOIL_FEWER_DEVICES:
		args->num_devices--;
		return;
	case SPOIL_MORE_DEVICES:
		args->num_devices++;
		return;
	case SPOIL_NO_DEVICES:
		args->devices = 0;
		return;
	case SPOIL_NO_BOS:
		args->bos = 0;
		return;
	case SPOIL_NO_PRIV:
		args->priv_data = 0;
		return;
	case SPOIL_USER_ID_0:
		image->devices[0].user_gpu_id = 0;
		return;
	case SPOIL_UNKNOWN_GPU:
		image->devices[0].actual_gpu_id ^= 0x5555;
		return;
	case SPOIL_BAD_FILE:
		image->devices[0].drm_fd = 9999;
		return;
	case SPOIL_NOT_A_RENDER_NODE:
		image->devices[0].drm_fd = (uint32_t)kfd;
		return;
	case SPOIL_VERSION:
		image->priv[0] = 2;
		return;
	case SPOIL_SHORT_PRIV:
		args->priv_data_size -= 8;
		return;
	case SPOIL_LONG_PRIV:
		args->priv_data_size += 8;
		return;
	case SPOIL_END:
		return;
	}
}

static enum spoil spoil_now;

static void spoilt_main(struct peer *peer)
{
	struct kfd_ioctl_criu_args args = criu_checkpoint_args(&saved->image);
	struct raw_process process;

	(void)peer;
	target_open(&process);
	for (int i = 0; i < process.gpus; i++)
		saved->image.devices[i].drm_fd = (uint32_t)process.render[i];
	if (used_render_fd >= 0)
		saved->image.devices[0].drm_fd = (uint32_t)used_render_fd;
	args.op = KFD_CRIU_OP_RESTORE;
	spoil_args(spoil_now, process.kfd, &args);
	if (raw_ioctl(process.kfd, AMDKFD_IOC_CRIU_OP, &args) != -EINVAL)
		rule_fail(__FILE__, __LINE__, "spoilt in way %d: not EINVAL", spoil_now);
	EXPECT(criu_unpause(process.kfd), -EINVAL);
}

RULE(restore_refuses_spoilt_arguments)
{
	struct criu_image *copy = criu_image_new();

	source_save();
	memcpy(copy, &saved->image, sizeof(*copy));
	for (spoil_now = 0; spoil_now < SPOIL_END; spoil_now++) {
		memcpy(&saved->image, copy, sizeof(*copy));
		peer_run(spoilt_main);
	}
}

RULE(restore_refuses_a_render_file_in_use)
{
	struct raw_process process;

	source_save();
	/* A file whose VM is the compute VM of a process already. */
	EXPECT(raw_open_acquired(&process), 0);
	used_render_fd = process.render[0];
	spoil_now = SPOIL_END;
	peer_run(spoilt_main);
}

static uint32_t event_type;

/* A process with a buffer and an event. */
static void event_source_main(struct peer *peer)
{
	struct kfd_ioctl_create_event_args create = { .event_type = event_type };
	struct raw_process process;
	struct raw_bo bo;

	(void)peer;
	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_VRAM, 4096, &bo), 0);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_CREATE_EVENT, &create), 0);
	EXPECT(criu_process_info(process.kfd, &saved->image), 0);
	EXPECT(criu_checkpoint(process.kfd, &saved->image), 0);
	EXPECT(criu_unpause(process.kfd), 0);
}

static void event_target_main(struct peer *peer)
{
	bool refused = event_type == KFD_IOC_EVENT_NODECHANGE && KERNEL(event_types);
	struct raw_process process;

	(void)peer;
	target_open(&process);
	EXPECT(criu_restore(&process, &saved->image), refused ? -EINVAL : 0);
}

RULE(restore_refuses_an_event_of_an_unknown_type_or_leaves_it_out)
{
	static const uint32_t types[] = { KFD_IOC_EVENT_HW_EXCEPTION, KFD_IOC_EVENT_NODECHANGE };

	saved_new();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		event_type = types[i];
		peer_run(event_source_main);
		peer_run(event_target_main);
	}
}
