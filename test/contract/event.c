/* SPDX-License-Identifier: GPL-2.0-only */
/* KFD events: ids, states, waiting. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "contract.h"
#include "raw_kfd.h"

#define PAGE_BYTES 32768

static int event_create(struct raw_process *process, uint32_t type, uint32_t auto_reset,
			uint64_t page, uint32_t *ret_id)
{
	struct kfd_ioctl_create_event_args args = {
		.event_type = type,
		.auto_reset = auto_reset,
		.event_page_offset = page,
	};
	int ret = raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_EVENT, &args);

	if (ret == 0)
		*ret_id = args.event_id;
	return ret;
}

static int event_set(struct raw_process *process, uint32_t id)
{
	struct kfd_ioctl_set_event_args args = { .event_id = id };

	return raw_ioctl(process->kfd, AMDKFD_IOC_SET_EVENT, &args);
}

static int event_reset(struct raw_process *process, uint32_t id)
{
	struct kfd_ioctl_reset_event_args args = { .event_id = id };

	return raw_ioctl(process->kfd, AMDKFD_IOC_RESET_EVENT, &args);
}

/* The wait result (0 complete, 1 timeout, 2 fail), or -errno. */
static int event_wait(struct raw_process *process, const uint32_t *ids, uint32_t count,
		      uint32_t all, uint32_t timeout_ms)
{
	struct kfd_event_data data[8] = { 0 };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)data,
		.num_events = count,
		.wait_for_all = all,
		.timeout = timeout_ms,
	};
	int ret;

	for (uint32_t i = 0; i < count; i++)
		data[i].event_id = ids[i];
	do
		ret = raw_ioctl(process->kfd, AMDKFD_IOC_WAIT_EVENTS, &args);
	while (ret == -EINTR);
	return ret < 0 ? ret : (int)args.wait_result;
}

/* A process with a signal event. libhsakmt hands over a buffer for the page of slots with the first
 * event. */
static uint32_t open_with_event(struct raw_process *process, uint32_t auto_reset)
{
	struct raw_bo page;
	uint32_t id;

	EXPECT(raw_open_acquired(process), 0);
	EXPECT(raw_alloc_mapped(process, 0, RAW_GTT, PAGE_BYTES, &page), 0);
	EXPECT(event_create(process, KFD_IOC_EVENT_SIGNAL, auto_reset, page.handle, &id), 0);
	return id;
}

RULE(event_ids_start_at_1_and_the_page_is_given_once)
{
	struct raw_process process;
	struct raw_bo page, small;
	uint32_t id;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, PAGE_BYTES, &page), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, 16384, &small), 0);
	if (!rule_kernel()->amd) {
		EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, small.handle, &id), -EINVAL);
		EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, small.handle + 77, &id),
		       -EINVAL);
	}
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, page.handle, &id), 0);
	EXPECT(id, 1);
	EXPECT(((uint64_t *)page.address)[4095], -1ll);
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, page.handle, &id), -EINVAL);
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, 0, &id), 0);
	EXPECT(id, 2);
	EXPECT(event_create(&process, KFD_IOC_EVENT_HW_EXCEPTION, 0, 0, &id), 0);
	EXPECT_TRUE(id >= 0x40000000);
	EXPECT(raw_unmap(&process, &page, process.gpu[0].gpu_id), 0);
	EXPECT(raw_free(&process, &page), -EPERM);
}

RULE(event_page_is_made_by_the_kernel_or_has_to_be_given)
{
	bool makes = rule_kernel()->event_page;
	struct raw_bo view = { .size = RAW_DOORBELL_BYTES, .mmap_offset = 2ull << 62 };
	struct raw_process process;
	uint32_t id;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, 0, &id), makes ? 0 : -ENOMEM);
	view.address = mmap(NULL, view.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(raw_mmap(process.kfd, &view), makes ? 0 : -EINVAL);
}

RULE(event_states_follow_set_reset_and_wait)
{
	struct raw_process process;
	uint32_t manual = open_with_event(&process, 0), automatic, memory, both[2];

	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 1, 0, &automatic), 0);
	EXPECT(event_create(&process, KFD_IOC_EVENT_MEMORY, 1, 0, &memory), 0);
	EXPECT(event_wait(&process, &manual, 1, 1, 0), 1);
	EXPECT(event_wait(&process, &manual, 1, 1, 20), 1);
	EXPECT(event_set(&process, manual), 0);
	EXPECT(event_wait(&process, &manual, 1, 1, 0), 0);
	EXPECT(event_wait(&process, &manual, 1, 1, 0), 0);
	EXPECT(event_reset(&process, manual), 0);
	EXPECT(event_wait(&process, &manual, 1, 1, 0), 1);
	EXPECT(event_set(&process, automatic), 0);
	both[0] = manual;
	both[1] = automatic;
	EXPECT(event_wait(&process, both, 2, 1, 0), 1);
	/* Waiting for all in vain may have consumed one of them. */
	EXPECT(event_set(&process, automatic), 0);
	EXPECT(event_wait(&process, both, 2, 0, 0), 0);
	EXPECT(event_wait(&process, &automatic, 1, 1, 0), 1);
	/* Others than signals are not set by hand. */
	EXPECT(event_set(&process, memory), -EINVAL);
	EXPECT(event_reset(&process, memory), -EINVAL);
	EXPECT(event_set(&process, 77), -EINVAL);
	both[1] = 77;
	EXPECT(event_wait(&process, both, 2, 0, 0), -EINVAL);
}

static void wake_up(int signal)
{
	(void)signal;
}

RULE(event_wait_is_interrupted_by_a_signal)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 50000 } };
	struct raw_process process;
	struct kfd_event_data data = { .event_id = open_with_event(&process, 1) };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.timeout = 60000,
	};
	struct sigaction action = { .sa_handler = wake_up };

	EXPECT(sigaction(SIGALRM, &action, NULL), 0);
	EXPECT(setitimer(ITIMER_REAL, &soon, NULL), 0);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_WAIT_EVENTS, &args), -EINTR);
	/* What is left of the time comes back, for the restart. */
	EXPECT_TRUE(args.timeout < 60000 && args.timeout > 0);
}

RULE(event_destroyed_is_gone)
{
	struct kfd_ioctl_destroy_event_args args = { 0 };
	struct raw_process process;
	uint32_t first = open_with_event(&process, 1), again;

	args.event_id = first;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_DESTROY_EVENT, &args), 0);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_DESTROY_EVENT, &args), -EINVAL);
	EXPECT(event_set(&process, first), -EINVAL);
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 1, 0, &again), 0);
	EXPECT(again, first);
}
