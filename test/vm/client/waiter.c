/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread that sleeps in hsaKmtWaitOnEvent() and counts its wake-ups. The CPU or the GPU sets the
 * event. */
#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define SETTLE_STEP_NS 500000
#define SETTLE_STEPS   (20 * (1000000000 / SETTLE_STEP_NS))

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	for (;;) {
		HSAKMT_STATUS status = hsaKmtWaitOnEvent(waiter->event, HSA_EVENTTIMEOUT_INFINITE);
		uint64_t seen;

		if (__atomic_load_n(&waiter->stop, __ATOMIC_ACQUIRE))
			return NULL;
		if (status) {
			report_fail(waiter->report, -EIO, "wait on %s event %u fails: %d",
				    waiter->name, waiter->event->EventId, status);
			return NULL;
		}
		seen = __atomic_add_fetch(&waiter->seen, 1, __ATOMIC_ACQ_REL);
		if (seen > __atomic_load_n(&waiter->sent, __ATOMIC_ACQUIRE))
			report_fail(waiter->report, -EILSEQ,
				    "%s event %u woke its waiter without being set", waiter->name,
				    waiter->event->EventId);
	}
}

int waiter_start(struct report *report, const char *name, struct waiter *waiter)
{
	HsaEventDescriptor descriptor = { .EventType = HSA_EVENTTYPE_SIGNAL };
	HSAKMT_STATUS status;
	int error;

	memset(waiter, 0, sizeof(*waiter));
	waiter->report = report;
	waiter->name = name;
	status = hsaKmtCreateEvent(&descriptor, false, false, &waiter->event);
	if (status)
		return report_fail(report, -EIO, "cannot create the %s event: %d", name, status);
	error = pthread_create(&waiter->thread, NULL, waiter_main, waiter);
	if (error)
		return report_fail(report, -error, "cannot start the thread of the %s event", name);
	waiter->running = true;
	return 0;
}

void waiter_stop(struct waiter *waiter)
{
	HSAKMT_STATUS status;

	if (!waiter->event)
		return;
	__atomic_store_n(&waiter->stop, true, __ATOMIC_RELEASE);
	status = hsaKmtSetEvent(waiter->event);
	if (status)
		report_fail(waiter->report, -EIO, "cannot set %s event %u: %d", waiter->name,
			    waiter->event->EventId, status);
	if (waiter->running)
		pthread_join(waiter->thread, NULL);
	status = hsaKmtDestroyEvent(waiter->event);
	if (status)
		report_fail(waiter->report, -EIO, "cannot destroy the %s event: %d", waiter->name,
			    status);
	waiter->event = NULL;
}

bool waiter_is_ready(struct waiter *waiter)
{
	return __atomic_load_n(&waiter->seen, __ATOMIC_ACQUIRE) ==
	       __atomic_load_n(&waiter->sent, __ATOMIC_ACQUIRE);
}

void waiter_expect(struct waiter *waiter)
{
	__atomic_add_fetch(&waiter->sent, 1, __ATOMIC_ACQ_REL);
}

int waiter_set(struct waiter *waiter)
{
	HSAKMT_STATUS status;

	waiter_expect(waiter);
	status = hsaKmtSetEvent(waiter->event);
	if (status)
		return report_fail(waiter->report, -EIO, "cannot set %s event %u: %d", waiter->name,
				   waiter->event->EventId, status);
	return 0;
}

int waiter_settle(struct waiter *waiter)
{
	const struct timespec step = { .tv_nsec = SETTLE_STEP_NS };

	for (long i = 0; !waiter_is_ready(waiter); i++) {
		if (report_failed(waiter->report))
			return -EIO;
		if (i == SETTLE_STEPS)
			return report_fail(waiter->report, -ETIME,
					   "%s event %u is lost: %" PRIu64 " set, %" PRIu64 " seen",
					   waiter->name, waiter->event->EventId, waiter->sent,
					   waiter->seen);
		(void)nanosleep(&step, NULL);
	}
	return 0;
}

uint64_t waiter_count(struct waiter *waiter)
{
	return __atomic_load_n(&waiter->seen, __ATOMIC_ACQUIRE);
}
