// SPDX-License-Identifier: GPL-2.0-only
/* Waits for the VRAM of a process that has just ended. When a process ends, the driver frees its
 * memory later: a callback of the kernel (SRCU) starts the work (kfd_process_notifier_release() in
 * kfd_process.c). Opening /dev/kfd waits for this work, but not for the callback. No call waits for
 * the callback, so the plugin asks for the free memory repeatedly. */
#include "memory/vram.h"

#include <inttypes.h>
#include <time.h>

#include "criu/log.h"

/* The waits are counted, because CRIU may change the task's clock. */
#define POLL_NS      10000000L
#define POLLS_MAX    1000
#define WAIT_SECONDS 10

_Static_assert(POLL_NS *POLLS_MAX == WAIT_SECONDS * 1000000000L, "one limit");

/* A sum that overflows only changes how long the plugin waits. */
static uint64_t vram_of(const struct restored_task *task, const struct kfd_state *state,
			uint32_t user_gpu_id)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];

		/* It has the memory of its owner. */
		if (task->kfd && task->kfd->bo_entries[i]->has_owner_pid)
			continue;
		if (bo->gpu_id == user_gpu_id && bo->alloc_flags & KFD_BO_VRAM)
			bytes += bo->size;
	}
	return bytes;
}

/* The number of waits, of at most @polls. Before RESTORE the driver knows a GPU by its actual id.
 * Kernels without the call give no answer, and the plugin does not wait. */
static unsigned int await_gpu(const struct restore_shared *shared, int kfd_id, int fd,
			      uint32_t gpu_id, unsigned int polls)
{
	uint64_t bytes;

	for (unsigned int i = 0;; i++) {
		uint64_t claimed = shared->claimed_vram[gpu_id % RESTORE_SHARED_GPUS];

		if (kfd_available_vram(fd, gpu_id, &bytes) < 0)
			return i;
		if (bytes >= claimed) {
			if (i)
				log_info("kfd %d: GPU 0x%04x: has enough VRAM now", kfd_id, gpu_id);
			return i;
		}
		if (!i)
			log_info("kfd %d: GPU 0x%04x: %" PRIu64
				 " MiB of VRAM are free, and the images need %" PRIu64
				 " MiB; waiting up to %d s for processes that have ended",
				 kfd_id, gpu_id, bytes >> 20, claimed >> 20, WAIT_SECONDS);
		if (i == polls) {
			log_warn("kfd %d: GPU 0x%04x: still only %" PRIu64 " MiB of VRAM are free",
				 kfd_id, gpu_id, bytes >> 20);
			return i;
		}
		(void)nanosleep(&(const struct timespec){ .tv_nsec = POLL_NS }, NULL);
	}
}

void vram_await(struct restore_shared *shared, const struct restored_task *task, int fd,
		const struct kfd_state *state)
{
	unsigned int polls = POLLS_MAX;

	for (uint32_t i = 0; i < state->num_devices; i++) {
		const struct kfd_device_bucket *device = &state->devices[i];
		uint64_t bytes = vram_of(task, state, device->user_gpu_id);

		shared->claimed_vram[device->actual_gpu_id % RESTORE_SHARED_GPUS] += bytes;
		if (bytes)
			polls -= await_gpu(shared, task->kfd_id, fd, device->actual_gpu_id, polls);
	}
}

void vram_end_claim(struct restore_shared *shared, const struct restored_task *task,
		    const struct kfd_state *state)
{
	for (uint32_t i = 0; i < state->num_devices; i++) {
		const struct kfd_device_bucket *device = &state->devices[i];

		shared->claimed_vram[device->actual_gpu_id % RESTORE_SHARED_GPUS] -=
			vram_of(task, state, device->user_gpu_id);
	}
}
