// SPDX-License-Identifier: GPL-2.0-only
/* Events: numbers, the page of signal slots, setting, waiting, and trap packets. The first event
 * decides which memory has the slots. */
#include "process.h"

#define UNSIGNALED      (~0ull)
#define OLD_SLOTS       256u /* usable before the kernel's own page is mapped */
#define TRAP_ID_BITS    0x0fffffffu
#define MAX_WAIT_EVENTS 4096u
#define WAIT_FOREVER    0xffffffffu

void sim_events_init(struct sim_process *process)
{
	sim_lock_init(&process->event_lock);
	sim_wait_init(&process->event_wait);
	sim_ids_init(&process->signals, 1); /* 0 is reserved */
	sim_ids_init(&process->others, SIM_EVENT_OTHER_BASE);
}

static void free_all(struct sim_process *process, struct sim_ids *ids)
{
	struct sim_event *event;
	u32 id = 0;

	while ((event = sim_ids_next(ids, &id))) {
		(void)sim_ids_remove(ids, id);
		sim_os_free(event);
		sim_count(process->sim, SIM_COUNT_EVENTS, -1);
	}
	sim_ids_done(ids);
}

void sim_events_done(struct sim_process *process)
{
	u32 i;

	free_all(process, &process->signals);
	free_all(process, &process->others);
	for (i = 0; !process->event_mem && i < SIM_EVENT_PAGES; i++)
		if (process->event_page[i])
			sim_os_page_free(process->event_page[i]);
	process->event_mem = NULL;
}

static bool has_slot(u32 type)
{
	return type == KFD_IOC_EVENT_SIGNAL || type == KFD_IOC_EVENT_DEBUG_EVENT;
}

static struct sim_event *find_event(struct sim_process *process, u32 id)
{
	return sim_ids_get(id >= SIM_EVENT_OTHER_BASE ? &process->others : &process->signals, id);
}

static u64 *slot_of(struct sim_process *process, u32 id)
{
	u64 *page = process->event_page[id * 8 / SIM_PAGE_SIZE];

	return page + id % (SIM_PAGE_SIZE / 8);
}

static void clear_slots(struct sim_process *process, u32 slots)
{
	u32 i;

	for (i = 0; i < SIM_EVENT_PAGES; i++)
		memset(process->event_page[i], 0xff, SIM_PAGE_SIZE);
	process->event_slots = slots;
	process->event_page_set = true;
}

int sim_events_set_page(struct sim_process *process, u64 handle)
{
	struct sim_mem *mem = sim_mem_find(process, handle);
	u32 i;

	if (!process->event_page_set && !mem && sim_process_pdd(process, (u32)(handle >> 32)))
		sim_mem_note_missing(process, "event page");
	if (process->event_page_set || !mem || !(mem->flags & KFD_MEM_GTT))
		return -EINVAL;
	/* kfd_event_page_set() of the out-of-tree driver does not compare the size */
	if (mem->bo->size < KFD_EVENT_PAGE_BYTES && SIM_KNOB(process->sim, unchecked_handles))
		sim_violation(process->sim, "event page of less than 32 KiB: oops");
	if (mem->bo->size < KFD_EVENT_PAGE_BYTES)
		return -EINVAL;
	for (i = 0; i < SIM_EVENT_PAGES; i++) {
		process->event_page[i] = sim_bo_page(mem->bo, i, true);
		if (!process->event_page[i])
			return -EINVAL;
	}
	process->event_mem = mem;
	clear_slots(process, KFD_EVENT_LIMIT);
	return 0;
}

/* The kernel's own page, if the process does not bring one. */
static int make_page(struct sim_process *process)
{
	u32 i;

	for (i = 0; i < SIM_EVENT_PAGES; i++) {
		if (!process->event_page[i])
			process->event_page[i] = sim_os_page_alloc();
		if (!process->event_page[i])
			return -ENOMEM;
	}
	clear_slots(process, OLD_SLOTS);
	return 0;
}

static int enter(struct sim_process *process, struct sim_event *event, bool fixed)
{
	struct sim_ids *ids = has_slot(event->type) ? &process->signals : &process->others;
	u32 end = has_slot(event->type) ? process->event_slots : 0x7fffffffu;
	int ret;

	sim_lock(&process->event_lock);
	event->serial = ++process->event_serial;
	if (fixed)
		ret = event->id < end && sim_ids_add_at(ids, event, event->id) == 0 ? 0 : -ENOSPC;
	else
		ret = sim_ids_add(ids, event, end, &event->id);
	sim_unlock(&process->event_lock);
	return ret;
}

static int add_event(struct sim_process *process, const struct sim_event *wanted, bool fixed,
		     u32 *ret_id)
{
	struct sim_event *event;
	int ret;

	if (has_slot(wanted->type) && !process->event_page_set) {
		ret = SIM_KNOB(process->sim, kernel_event_page) ? make_page(process) : -ENOMEM;
		if (ret < 0)
			return ret;
	}
	event = sim_os_alloc(sizeof(*event));
	if (!event)
		return -ENOMEM;
	*event = *wanted;
	event->age = 1;
	ret = enter(process, event, fixed);
	if (ret < 0) {
		sim_os_free(event);
		return ret;
	}
	sim_count(process->sim, SIM_COUNT_EVENTS, 1);
	*ret_id = event->id;
	return 0;
}

int sim_events_restore(struct sim_process *process, const struct sim_event *wanted)
{
	u32 id;

	return add_event(process, wanted, true, &id);
}

SIM_KFD_HANDLER(sim_kfd_create_event)
{
	struct kfd_ioctl_create_event_args *io = args;
	struct sim_event wanted = { .type = io->event_type, .auto_reset = io->auto_reset != 0 };
	int ret = 0;

	(void)size;
	if (io->event_page_offset)
		ret = sim_events_set_page(process, io->event_page_offset);
	if (ret == 0)
		ret = add_event(process, &wanted, false, &io->event_id);
	if (ret < 0)
		return ret;
	io->event_trigger_data = io->event_id;
	if (has_slot(io->event_type)) {
		io->event_page_offset = KFD_MMAP_TYPE(KFD_MMAP_EVENTS);
		io->event_slot_index = io->event_id;
	}
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_destroy_event)
{
	struct kfd_ioctl_set_event_args *in = args;
	struct sim_event *event;

	(void)size;
	sim_lock(&process->event_lock);
	event = find_event(process, in->event_id);
	if (event)
		(void)sim_ids_remove(has_slot(event->type) ? &process->signals : &process->others,
				     event->id);
	sim_unlock(&process->event_lock);
	if (!event)
		return -EINVAL;
	sim_os_wake(&process->event_wait);
	sim_os_free(event);
	sim_count(process->sim, SIM_COUNT_EVENTS, -1);
	return 0;
}

static void set_event(struct sim_event *event)
{
	event->signaled = true;
	event->age++;
}

SIM_KFD_HANDLER(sim_kfd_set_event)
{
	struct kfd_ioctl_set_event_args *in = args;
	struct sim_event *event;
	int ret = -EINVAL;

	(void)size;
	sim_lock(&process->event_lock);
	event = find_event(process, in->event_id);
	if (event && event->type == KFD_IOC_EVENT_SIGNAL) {
		set_event(event);
		ret = 0;
	}
	sim_unlock(&process->event_lock);
	if (ret == 0)
		sim_os_wake(&process->event_wait);
	return ret;
}

SIM_KFD_HANDLER(sim_kfd_reset_event)
{
	struct kfd_ioctl_set_event_args *in = args;
	struct sim_event *event;
	int ret = -EINVAL;

	(void)size;
	sim_lock(&process->event_lock);
	event = find_event(process, in->event_id);
	if (event && event->type == KFD_IOC_EVENT_SIGNAL) {
		event->signaled = false;
		ret = 0;
	}
	sim_unlock(&process->event_lock);
	return ret;
}

/* Signals the event whose slot was written, and frees the slot for the next signal. */
static bool take_slot(struct sim_process *process, struct sim_event *event)
{
	u64 *slot = slot_of(process, event->id);

	if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) == UNSIGNALED)
		return false;
	__atomic_store_n(slot, UNSIGNALED, __ATOMIC_RELEASE);
	set_event(event);
	return true;
}

void sim_events_trap(struct sim_process *process, u32 context)
{
	struct sim_event *event;
	u32 id = 0;

	sim_lock(&process->event_lock);
	event = process->event_page_set ? sim_ids_get(&process->signals, context & TRAP_ID_BITS)
					: NULL;
	/* the interrupt names no signalled event: the kernel then scans all of them */
	if (process->event_page_set && (!event || !take_slot(process, event)))
		for (; (event = sim_ids_next(&process->signals, &id)); id++)
			(void)take_slot(process, event);
	sim_unlock(&process->event_lock);
	sim_os_wake(&process->event_wait);
}

struct waited {
	u32 id;
	u64 serial;
	u64 last_age;
	bool activated;
};

struct waiter {
	struct sim_process *process;
	struct waited *events;
	u32 count;
	bool all;
	bool destroyed;
};

static int look_up(struct sim_process *process, const struct kfd_ioctl_wait_events_args *io,
		   struct waiter *waiter)
{
	u32 i;

	for (i = 0; i < io->num_events; i++) {
		struct sim_event_data data;
		struct sim_event *event;

		if (sim_os_copy_from_user(&data, io->events_ptr + i * sizeof(data), sizeof(data)) <
		    0)
			return -EFAULT;
		sim_lock(&process->event_lock);
		event = find_event(process, data.event_id);
		if (event) {
			waiter->events[i].id = data.event_id;
			waiter->events[i].serial = event->serial;
			waiter->events[i].last_age =
				event->type == KFD_IOC_EVENT_SIGNAL ? data.last_event_age : 0;
		}
		sim_unlock(&process->event_lock);
		if (!event)
			return -EINVAL;
	}
	return 0;
}

/* Consumes a signal, once. */
static void look_at(struct sim_process *process, struct waited *waited, bool *destroyed)
{
	struct sim_event *event = find_event(process, waited->id);

	if (!event || event->serial != waited->serial) {
		*destroyed = true;
		return;
	}
	if (waited->activated)
		return;
	if (waited->last_age && event->age != waited->last_age)
		waited->activated = true;
	if (!event->signaled)
		return;
	waited->activated = true;
	event->signaled = !event->auto_reset;
}

static bool is_satisfied(void *arg)
{
	struct waiter *waiter = arg;
	u32 activated = 0, i;

	sim_lock(&waiter->process->event_lock);
	for (i = 0; i < waiter->count; i++) {
		look_at(waiter->process, &waiter->events[i], &waiter->destroyed);
		activated += waiter->events[i].activated;
		if (activated && !waiter->all)
			break;
	}
	sim_unlock(&waiter->process->event_lock);
	return waiter->destroyed || (waiter->all ? activated == waiter->count : activated > 0);
}

static int copy_out(struct sim_process *process, u64 user, const struct waited *waited)
{
	struct sim_event_data data;
	struct sim_event *event;

	if (!waited->activated)
		return 0;
	if (sim_os_copy_from_user(&data, user, sizeof(data)) < 0)
		return -EFAULT;
	sim_lock(&process->event_lock);
	event = find_event(process, waited->id);
	if (event && event->type == KFD_IOC_EVENT_SIGNAL && waited->last_age)
		data.last_event_age = event->age;
	else if (event &&
		 (event->type == KFD_IOC_EVENT_MEMORY || event->type == KFD_IOC_EVENT_HW_EXCEPTION))
		memcpy(data.exception, event->exception, sizeof(data.exception));
	sim_unlock(&process->event_lock);
	return sim_os_copy_to_user(user, &data, sizeof(data));
}

static int wait_for(struct kfd_ioctl_wait_events_args *io, struct waiter *waiter)
{
	u64 start = sim_os_now_ns(), passed_ms;
	u64 deadline = io->timeout == WAIT_FOREVER ? SIM_FOREVER : start + io->timeout * 1000000ull;
	u32 i;
	int ret;

	ret = sim_os_wait(&waiter->process->event_wait, is_satisfied, waiter, deadline, true);
	if (ret < 0 && ret != -ETIME) {
		/* the restarted call has the remaining time */
		passed_ms = (sim_os_now_ns() - start) / 1000000;
		if (io->timeout && io->timeout != WAIT_FOREVER)
			io->timeout = passed_ms < io->timeout ? io->timeout - (u32)passed_ms : 0;
		return ret;
	}
	if (waiter->destroyed) {
		io->wait_result = KFD_IOC_WAIT_RESULT_FAIL;
		return -EIO;
	}
	io->wait_result =
		ret == -ETIME ? KFD_IOC_WAIT_RESULT_TIMEOUT : KFD_IOC_WAIT_RESULT_COMPLETE;
	for (i = 0; ret == 0 && i < waiter->count; i++)
		if (copy_out(waiter->process, io->events_ptr + i * sizeof(struct sim_event_data),
			     &waiter->events[i]) < 0)
			return -EFAULT;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_wait_events)
{
	struct kfd_ioctl_wait_events_args *io = args;
	struct waiter waiter = { .process = process,
				 .count = io->num_events,
				 .all = io->wait_for_all != 0 };
	int ret;

	(void)size;
	if (io->num_events > MAX_WAIT_EVENTS)
		return -ENOMEM;
	waiter.events = sim_os_alloc((u64)max(io->num_events, 1u) * sizeof(*waiter.events));
	if (!waiter.events)
		return -ENOMEM;
	io->wait_result = KFD_IOC_WAIT_RESULT_FAIL;
	ret = look_up(process, io, &waiter);
	if (ret == 0)
		ret = wait_for(io, &waiter);
	sim_os_free(waiter.events);
	return ret;
}

static u32 count_ids(const struct sim_ids *ids)
{
	u32 count = 0, id = 0;

	for (; sim_ids_next(ids, &id); id++)
		count++;
	return count;
}

u32 sim_events_count(struct sim_process *process)
{
	u32 count;

	sim_lock(&process->event_lock);
	count = count_ids(&process->signals) + count_ids(&process->others);
	sim_unlock(&process->event_lock);
	return count;
}

struct sim_event *sim_events_next(struct sim_process *process, u32 *id)
{
	struct sim_event *event = NULL;

	sim_lock(&process->event_lock);
	if (*id < SIM_EVENT_OTHER_BASE)
		event = sim_ids_next(&process->signals, id);
	if (!event)
		event = sim_ids_next(&process->others, id);
	sim_unlock(&process->event_lock);
	return event;
}
