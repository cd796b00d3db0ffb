// SPDX-License-Identifier: GPL-2.0-only
/* Events: numbers, and the page of signal slots. The first event decides which memory has the
 * slots. No program here waits for events. */
#include "process.h"

#define OLD_SLOTS 256u /* usable before the kernel's own page is mapped */

void sim_events_init(struct sim_process *process)
{
	sim_lock_init(&process->event_lock);
	sim_ids_init(&process->signals, 1); /* 0 is reserved */
	sim_ids_init(&process->others, SIM_EVENT_OTHER_BASE);
}

static void free_all(struct sim_process *process, struct sim_ids *ids)
{
	struct sim_event *event;
	u32 id = 0;

	while ((event = sim_ids_next(ids, &id))) {
		(void)sim_ids_remove(ids, id);
		free(event);
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
		process->event_page[i] = sim_bo_page(mem->bo, i);
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
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	*event = *wanted;
	ret = enter(process, event, fixed);
	if (ret < 0) {
		free(event);
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

u32 sim_events_count(struct sim_process *process)
{
	u32 count;

	sim_lock(&process->event_lock);
	count = sim_ids_count(&process->signals) + sim_ids_count(&process->others);
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
