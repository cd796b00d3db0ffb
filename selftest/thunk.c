// SPDX-License-Identifier: GPL-2.0-only
/* Queues and events by plain ioctls. */
#include "thunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "process.h"
#include "raw_aql.h"

#define EOP_BYTES       4096u
#define EVENT_NODE      0
#define WAIT_FOR_EVER   UINT32_MAX
#define WORDS_APART     8 /* the two pointers of an SDMA queue, in cache lines of their own */
#define PRIORITY_OF_HSA 7

/* What a queue has beside its ring. */
struct parts {
	struct report report; /* of failures that are returned */
	struct memory pointers, eop, waves;
	struct raw_queue doorbell;
};

static int alloc_part(struct parts *parts, const struct gpu *gpu, size_t size,
		      struct memory *ret_memory)
{
	const struct gpus only = memory_only(gpu);
	int ret = memory_alloc(&parts->report, MEMORY_GTT, size, gpu, &only, ret_memory);

	if (ret == 0)
		memset(ret_memory->address, 0, ret_memory->size_bytes);
	return ret;
}

static int alloc_for_waves(struct parts *parts, const struct gpu *gpu,
			   struct kfd_ioctl_create_queue_args *args)
{
	struct raw_aql_sizes sizes;
	int ret = raw_aql_find_sizes(&process_get()->gpu[gpu->index], &sizes);

	if (ret == 0)
		ret = alloc_part(parts, gpu, EOP_BYTES, &parts->eop);
	if (ret == 0)
		ret = alloc_part(parts, gpu, sizes.total, &parts->waves);
	if (ret < 0)
		return ret;
	args->eop_buffer_address = (uintptr_t)parts->eop.address;
	args->eop_buffer_size = EOP_BYTES;
	args->ctx_save_restore_address = (uintptr_t)parts->waves.address;
	args->ctx_save_restore_size = sizes.save_area;
	args->ctl_stack_size = sizes.ctl_stack;
	return 0;
}

static int create(struct parts *parts, const struct gpu *gpu, enum thunk_queue_type type,
		  const struct memory *ring, struct thunk_queue *queue)
{
	struct raw_process *process = process_get();
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = (uintptr_t)ring->address,
		.ring_size = (uint32_t)ring->size_bytes,
		.read_pointer_address = (uintptr_t)queue->read,
		.write_pointer_address = (uintptr_t)queue->write,
		.gpu_id = process->gpu[gpu->index].gpu_id,
		.queue_type = type == THUNK_AQL ? KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
						: KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = 100,
		.queue_priority = PRIORITY_OF_HSA,
	};
	int ret = type == THUNK_AQL ? alloc_for_waves(parts, gpu, &args) : 0;

	if (ret == 0)
		ret = raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (ret < 0)
		return ret;
	queue->id = args.queue_id;
	ret = raw_map_doorbell(process, args.doorbell_offset, &parts->doorbell);
	queue->doorbell = parts->doorbell.doorbell;
	return ret;
}

static void free_parts(struct parts *parts)
{
	if (parts->doorbell.slice)
		(void)munmap(parts->doorbell.slice, RAW_DOORBELL_BYTES);
	memory_free(&parts->report, &parts->waves);
	memory_free(&parts->report, &parts->eop);
	memory_free(&parts->report, &parts->pointers);
	free(parts);
}

int thunk_queue_new(const struct gpu *gpu, enum thunk_queue_type type, const struct memory *ring,
		    uint64_t *pointers, struct thunk_queue *ret_queue)
{
	struct parts *parts = calloc(1, sizeof(*parts));
	struct thunk_queue queue = { .more = parts };
	int ret = 0;

	if (!parts)
		return -ENOMEM;
	report_init(&parts->report, NULL);
	if (pointers) {
		queue.read = pointers;
		queue.write = pointers + 1;
	} else {
		ret = alloc_part(parts, gpu, 4096, &parts->pointers);
		queue.read = parts->pointers.address;
		queue.write = queue.read + WORDS_APART;
	}
	if (ret == 0)
		ret = create(parts, gpu, type, ring, &queue);
	if (ret < 0) {
		free_parts(parts);
		return ret;
	}
	*ret_queue = queue;
	return 0;
}

int thunk_queue_free(struct thunk_queue *queue)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = (uint32_t)queue->id };
	int ret;

	if (!queue->doorbell)
		return 0;
	queue->doorbell = NULL;
	ret = raw_ioctl(process_get()->kfd, AMDKFD_IOC_DESTROY_QUEUE, &args);
	free_parts(queue->more);
	return ret;
}

/* Of all events of the process. */
static int alloc_event_page(struct memory *ret_page)
{
	struct gpus all = { .count = process_get()->gpus };
	struct report report;

	for (int i = 0; i < all.count; i++)
		all.list[i].index = i;
	report_init(&report, NULL);
	return memory_alloc(&report, MEMORY_GTT, KFD_SIGNAL_EVENT_LIMIT * 8, &all.list[0], &all,
			    ret_page);
}

int thunk_event_new(enum thunk_event_type type, const struct gpu *gpu, bool manual,
		    struct thunk_event **ret_event)
{
	/* The process keeps it until it ends. */
	static struct memory page;
	static const uint32_t types[] = {
		[THUNK_SIGNAL] = KFD_IOC_EVENT_SIGNAL,
		[THUNK_HW_EXCEPTION] = KFD_IOC_EVENT_HW_EXCEPTION,
		[THUNK_MEMORY] = KFD_IOC_EVENT_MEMORY,
	};
	struct kfd_ioctl_create_event_args args = {
		.event_type = types[type],
		.auto_reset = !manual,
		.node_id = type == THUNK_SIGNAL ? EVENT_NODE : gpu->node,
	};
	struct thunk_event *event = calloc(1, sizeof(*event));
	int ret = event ? 0 : -ENOMEM;

	/* The first event brings the page. */
	if (ret == 0 && !page.address) {
		ret = alloc_event_page(&page);
		args.event_page_offset = page.handle;
	}
	if (ret == 0)
		ret = raw_ioctl(process_get()->kfd, AMDKFD_IOC_CREATE_EVENT, &args);
	if (ret < 0) {
		free(event);
		return ret;
	}
	event->id = args.event_id;
	event->slot = (uint64_t *)page.address + args.event_slot_index;
	*ret_event = event;
	return 0;
}

int thunk_event_free(struct thunk_event *event)
{
	struct kfd_ioctl_destroy_event_args args = { .event_id = event->id };
	int ret = raw_ioctl(process_get()->kfd, AMDKFD_IOC_DESTROY_EVENT, &args);

	free(event);
	return ret;
}

int thunk_event_set(struct thunk_event *event, bool state)
{
	struct kfd_ioctl_set_event_args args = { .event_id = event->id };

	/* Both calls have the same arguments. */
	return raw_ioctl(process_get()->kfd, state ? AMDKFD_IOC_SET_EVENT : AMDKFD_IOC_RESET_EVENT,
			 &args);
}

int thunk_event_wait(struct thunk_event *event, bool now)
{
	struct kfd_event_data data = { .event_id = event->id };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.wait_for_all = 1,
		.timeout = now ? 0 : WAIT_FOR_EVER,
	};
	int ret;

	/* A checkpoint interrupts the wait. */
	do
		ret = raw_ioctl(process_get()->kfd, AMDKFD_IOC_WAIT_EVENTS, &args);
	while (ret == -EINTR || ret == -EAGAIN);
	if (ret < 0)
		return ret;
	if (args.wait_result == KFD_IOC_WAIT_RESULT_TIMEOUT)
		return -ETIME;
	return args.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE ? 0 : -EIO;
}
