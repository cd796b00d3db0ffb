// SPDX-License-Identifier: GPL-2.0-only
/* Queues and events by libhsakmt. */
#include "thunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hsakmt.h>

int thunk_queue_new(const struct gpu *gpu, enum thunk_queue_type type, const struct memory *ring,
		    uint64_t *pointers, struct thunk_queue *ret_queue)
{
	HsaQueueResource resource = { 0 };

	if (pointers) {
		resource.Queue_read_ptr_aql = pointers;
		resource.Queue_write_ptr_aql = pointers + 1;
	}
	if (hsaKmtCreateQueue(gpu->node, type == THUNK_AQL ? HSA_QUEUE_COMPUTE_AQL : HSA_QUEUE_SDMA,
			      100, HSA_QUEUE_PRIORITY_NORMAL, ring->address, ring->size_bytes, NULL,
			      &resource))
		return -EIO;
	*ret_queue = (struct thunk_queue){
		.id = resource.QueueId,
		.read = resource.Queue_read_ptr_aql,
		.write = resource.Queue_write_ptr_aql,
		.doorbell = resource.Queue_DoorBell_aql,
	};
	return 0;
}

int thunk_queue_free(struct thunk_queue *queue)
{
	if (!queue->doorbell)
		return 0;
	queue->doorbell = NULL;
	return hsaKmtDestroyQueue(queue->id) ? -EIO : 0;
}

int thunk_event_new(enum thunk_event_type type, const struct gpu *gpu, bool manual,
		    struct thunk_event **ret_event)
{
	static const HSA_EVENTTYPE types[] = {
		[THUNK_SIGNAL] = HSA_EVENTTYPE_SIGNAL,
		[THUNK_HW_EXCEPTION] = HSA_EVENTTYPE_HW_EXCEPTION,
		[THUNK_MEMORY] = HSA_EVENTTYPE_MEMORY,
	};
	HsaEventDescriptor descriptor = { .EventType = types[type],
					  .NodeId = type == THUNK_SIGNAL ? 0 : gpu->node };
	struct thunk_event *event = calloc(1, sizeof(*event));
	HsaEvent *more;

	if (!event)
		return -ENOMEM;
	if (hsaKmtCreateEvent(&descriptor, manual, false, &more)) {
		free(event);
		return -EIO;
	}
	event->id = more->EventId;
	event->slot = (uint64_t *)(uintptr_t)more->EventData.HWData2;
	event->more = more;
	*ret_event = event;
	return 0;
}

int thunk_event_free(struct thunk_event *event)
{
	HSAKMT_STATUS status = hsaKmtDestroyEvent(event->more);

	free(event);
	return status ? -EIO : 0;
}

int thunk_event_set(struct thunk_event *event, bool state)
{
	return (state ? hsaKmtSetEvent(event->more) : hsaKmtResetEvent(event->more)) ? -EIO : 0;
}

/* hsaKmtQueryEventState() always says yes; a wait without patience asks the kernel. */
int thunk_event_wait(struct thunk_event *event, bool now)
{
	HSAKMT_STATUS status = hsaKmtWaitOnEvent(event->more, now ? HSA_EVENTTIMEOUT_IMMEDIATE
								  : HSA_EVENTTIMEOUT_INFINITE);

	if (status == HSAKMT_STATUS_WAIT_TIMEOUT)
		return -ETIME;
	return status ? -EIO : 0;
}
