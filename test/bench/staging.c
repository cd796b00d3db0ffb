// SPDX-License-Identifier: GPL-2.0-only
/* Counts registered memory, and fills its pages. Threads of several GPUs call this at the same
 * time. */
#include "staging.h"

#include <amdgpu.h>
#include <pthread.h>
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "content/sdma.h"

#define PAGE 4096u

int __real_amdgpu_create_bo_from_user_mem(amdgpu_device_handle device, void *memory, uint64_t size,
					  amdgpu_bo_handle *ret_bo);
int __wrap_amdgpu_create_bo_from_user_mem(amdgpu_device_handle device, void *memory, uint64_t size,
					  amdgpu_bo_handle *ret_bo);
int __real_sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size,
		     struct sdma **ret_gpu);
int __wrap_sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size,
		     struct sdma **ret_gpu);

static struct {
	pthread_mutex_t lock;
	bool half_zero;
	uint64_t registered;
	unsigned int slots;
	uint64_t slot_size;
} staging = { .lock = PTHREAD_MUTEX_INITIALIZER };

void staging_begin(bool half_zero)
{
	staging.half_zero = half_zero;
	staging.registered = 0;
}

/* Registered memory stays registered to the end of the run. */
uint64_t staging_peak(void)
{
	return staging.registered;
}

void staging_slots(unsigned int *ret_slots, uint64_t *ret_slot_size)
{
	*ret_slots = staging.slots;
	*ret_slot_size = staging.slot_size;
}

/* One word in each page ends a search for zeros there. */
static void mark(char *memory, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE) {
		if (!staging.half_zero || at % STAGING_PERIOD < STAGING_PERIOD / 2)
			*(uint64_t *)(memory + at + PAGE / 2) = at + 1;
	}
}

int __wrap_amdgpu_create_bo_from_user_mem(amdgpu_device_handle device, void *memory, uint64_t size,
					  amdgpu_bo_handle *ret_bo)
{
	(void)madvise(memory, size, MADV_POPULATE_WRITE);
	mark(memory, size);
	(void)pthread_mutex_lock(&staging.lock);
	staging.registered += size;
	(void)pthread_mutex_unlock(&staging.lock);
	return __real_amdgpu_create_bo_from_user_mem(device, memory, size, ret_bo);
}

int __wrap_sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size,
		     struct sdma **ret_gpu)
{
	(void)pthread_mutex_lock(&staging.lock);
	staging.slots = slots;
	staging.slot_size = slot_size;
	(void)pthread_mutex_unlock(&staging.lock);
	return __real_sdma_open(render_minor, slots, slot_size, ret_gpu);
}
