// SPDX-License-Identifier: GPL-2.0-only
/* AQL queues on plain ioctls. Like raw_kfd.c, it checks nothing that a test would want to see. */
#include "raw_aql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "gcn_listing.h"

#define PROPERTIES  "/sys/devices/virtual/kfd/kfd/topology/nodes/%d/properties"
#define RING_BYTES  4096u /* 64 slots */
#define EOP_BYTES   4096u
#define CODE_OFFSET 256u
#define STEP_NS     1000000
#define WAIT_STEPS  60000

_Static_assert(sizeof(struct raw_packet) * RAW_AQL_SLOTS == RING_BYTES, "ring");
_Static_assert(sizeof(struct raw_signal) == 64, "amd_signal_t");

static int read_properties(const struct raw_gpu *gpu, const char *const *names, uint32_t *numbers,
			   int count)
{
	char path[128], key[64];
	long value;
	FILE *file;

	(void)snprintf(path, sizeof(path), PROPERTIES, gpu->node);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fscanf(file, "%63s %ld", key, &value) == 2)
		for (int i = 0; i < count; i++)
			if (strcmp(key, names[i]) == 0)
				numbers[i] = (uint32_t)value;
	(void)fclose(file);
	return 0;
}

int raw_ctl_stack_size(const struct raw_gpu *gpu, uint32_t *ret_size)
{
	static const char *const names[] = { "simd_count", "simd_per_cu", "array_count",
					     "simd_arrays_per_engine", "num_xcc" };
	uint32_t numbers[5] = { 0, 0, 0, 0, 1 }, waves, limit;
	int ret = read_properties(gpu, names, numbers, 5);

	for (int i = 0; !ret && i < 5; i++)
		if (!numbers[i])
			ret = -EPROTO;
	if (ret < 0)
		return ret;
	waves = numbers[0] / numbers[1] / numbers[4] * 40;
	limit = numbers[2] / numbers[3] * 512;
	waves = waves < limit ? waves : limit;
	*ret_size = (40 + waves * 8 + 8 + 4095) / 4096 * 4096;
	return 0;
}

static int allocate(struct raw_process *process, int gpu, uint32_t waves_bytes,
		    struct raw_aql *queue)
{
	int ret = raw_alloc_mapped(process, gpu, RAW_GTT, RING_BYTES, &queue->ring);

	if (ret == 0)
		ret = raw_alloc_mapped(process, gpu, RAW_GTT, 4096, &queue->pointers);
	if (ret == 0)
		ret = raw_alloc_mapped(process, gpu, RAW_GTT, EOP_BYTES, &queue->eop);
	if (ret == 0)
		ret = raw_alloc_mapped(process, gpu, RAW_GTT, waves_bytes, &queue->waves);
	if (ret < 0)
		return ret;
	memset(queue->pointers.address, 0, 4096);
	for (uint32_t i = 0; i < RAW_AQL_SLOTS; i++)
		((struct raw_packet *)(void *)queue->ring.address)[i] =
			(struct raw_packet){ .header = RAW_AQL_INVALID };
	queue->read = (volatile uint64_t *)(void *)queue->pointers.address;
	queue->write = queue->read + 8;
	return 0;
}

static int map_doorbell(struct raw_process *process, uint64_t offset, struct raw_aql *queue)
{
	struct raw_queue mapped = { 0 };
	int ret = raw_map_doorbell(process, offset, &mapped);

	queue->slice = mapped.slice;
	queue->doorbell = mapped.doorbell;
	return ret;
}

int raw_aql_create(struct raw_process *process, int gpu, struct raw_aql *ret_queue)
{
	return raw_aql_create_with(process, gpu, RAW_AQL_WAVES, ret_queue);
}

int raw_aql_create_on(const struct raw_process *process, const struct raw_gpu *gpu,
		      struct kfd_ioctl_create_queue_args *args)
{
	int ret = raw_ctl_stack_size(gpu, &args->ctl_stack_size);

	args->gpu_id = gpu->gpu_id;
	args->queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	args->queue_percentage = 100;
	return ret ? ret : raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_QUEUE, args);
}

int raw_aql_create_with(struct raw_process *process, int gpu, uint32_t waves_bytes,
			struct raw_aql *ret_queue)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = RING_BYTES,
		.eop_buffer_size = EOP_BYTES,
		.ctx_save_restore_size = waves_bytes,
		.queue_priority = 7,
	};
	int ret = allocate(process, gpu, waves_bytes, ret_queue);

	if (ret < 0)
		return ret;
	args.ring_base_address = (uintptr_t)ret_queue->ring.address;
	args.read_pointer_address = (uintptr_t)ret_queue->read;
	args.write_pointer_address = (uintptr_t)ret_queue->write;
	args.eop_buffer_address = (uintptr_t)ret_queue->eop.address;
	args.ctx_save_restore_address = (uintptr_t)ret_queue->waves.address;
	ret = raw_aql_create_on(process, &process->gpu[gpu], &args);
	if (ret < 0)
		return ret;
	ret_queue->id = args.queue_id;
	return map_doorbell(process, args.doorbell_offset, ret_queue);
}

int raw_aql_set_percentage(struct raw_process *process, struct raw_aql *queue, uint32_t percentage)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = (uintptr_t)queue->ring.address,
		.ring_size = RING_BYTES,
		.queue_id = queue->id,
		.queue_percentage = percentage,
		.queue_priority = 7,
	};

	return raw_ioctl(process->kfd, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

int raw_aql_destroy(struct raw_process *process, struct raw_aql *queue)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = queue->id };

	return raw_ioctl(process->kfd, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

uint64_t raw_aql_put(struct raw_aql *queue, const struct raw_packet *packet)
{
	uint64_t index = __atomic_fetch_add(queue->write, 1, __ATOMIC_RELAXED);
	struct raw_packet *slot =
		(struct raw_packet *)(void *)queue->ring.address + index % RAW_AQL_SLOTS;

	memcpy((char *)slot + sizeof(slot->header), (const char *)packet + sizeof(slot->header),
	       sizeof(*slot) - sizeof(slot->header));
	__atomic_store_n(&slot->header, packet->header, __ATOMIC_RELEASE);
	return index;
}

void raw_aql_ring(struct raw_aql *queue, uint64_t index)
{
	__atomic_store_n(queue->doorbell, index, __ATOMIC_RELEASE);
}

static void rest(void)
{
	const struct timespec step = { .tv_nsec = STEP_NS };

	(void)nanosleep(&step, NULL);
}

int raw_aql_wait(struct raw_aql *queue)
{
	for (int i = 0; i < WAIT_STEPS; i++) {
		if (__atomic_load_n(queue->read, __ATOMIC_ACQUIRE) == *queue->write)
			return 0;
		rest();
	}
	return -ETIME;
}

void raw_signal_init(struct raw_signal *signal, int64_t value)
{
	*signal = (struct raw_signal){ .kind = 1, .value = value };
}

int raw_signal_wait(const struct raw_signal *signal, int64_t value)
{
	for (int i = 0; i < WAIT_STEPS; i++) {
		if (__atomic_load_n(&signal->value, __ATOMIC_ACQUIRE) == value)
			return 0;
		rest();
	}
	return -ETIME;
}

int raw_kernel_load(const char *name, void *to, struct raw_packet *ret_packet)
{
	struct listed_kernel kernel;

	if (listing_read(name, &kernel) < 0 || CODE_OFFSET + kernel.dwords * 4 > RAW_KERNEL_BYTES)
		return -ENOENT;
	/* where the code begins, from the descriptor */
	kernel.descriptor[4] = CODE_OFFSET;
	kernel.descriptor[5] = 0;
	memcpy(to, kernel.descriptor, sizeof(kernel.descriptor));
	memcpy((char *)to + CODE_OFFSET, kernel.code, kernel.dwords * 4);
	*ret_packet = (struct raw_packet){
		.header = RAW_AQL_DISPATCH | RAW_AQL_SYSTEM_SCOPES,
		.setup = 1,
		.workgroup = { 64, 1, 1 },
		.grid = { 64, 1, 1 },
		.group_bytes = kernel.descriptor[0],
		.kernel = (uintptr_t)to,
	};
	return 0;
}
