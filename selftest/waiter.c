/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread that sleeps in thunk_event_wait() and counts its wake-ups. The CPU or the GPU sets the
 * event. */
#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define SETTLE_STEP_US 500
#define SETTLE_STEPS   (20 * (1000000 / SETTLE_STEP_US))

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	for (;;) {
		int ret = thunk_event_wait(waiter->event, false);
		uint64_t seen;

		if (__atomic_load_n(&waiter->stop, __ATOMIC_ACQUIRE))
			return NULL;
		if (ret < 0) {
			report_fail(waiter->report, ret, "wait on %s event %u fails: %s",
				    waiter->name, waiter->event->id, strerror(-ret));
			return NULL;
		}
		seen = __atomic_add_fetch(&waiter->seen, 1, __ATOMIC_ACQ_REL);
		if (seen > __atomic_load_n(&waiter->sent, __ATOMIC_ACQUIRE))
			report_fail(waiter->report, -EILSEQ,
				    "%s event %u woke its waiter without being set", waiter->name,
				    waiter->event->id);
	}
}

int waiter_start(struct report *report, const char *name, struct waiter *waiter)
{
	int error;

	memset(waiter, 0, sizeof(*waiter));
	waiter->report = report;
	waiter->name = name;
	error = -thunk_event_new(THUNK_SIGNAL, NULL, false, &waiter->event);
	if (error)
		return report_fail(report, -error, "cannot create the %s event: %s", name,
				   strerror(error));
	error = pthread_create(&waiter->thread, NULL, waiter_main, waiter);
	if (error)
		return report_fail(report, -error, "cannot start the thread of the %s event", name);
	waiter->running = true;
	return 0;
}

void waiter_stop(struct waiter *waiter)
{
	int ret;

	if (!waiter->event)
		return;
	__atomic_store_n(&waiter->stop, true, __ATOMIC_RELEASE);
	ret = thunk_event_set(waiter->event, true);
	if (ret < 0)
		report_fail(waiter->report, ret, "cannot set %s event %u: %s", waiter->name,
			    waiter->event->id, strerror(-ret));
	if (waiter->running)
		pthread_join(waiter->thread, NULL);
	ret = thunk_event_free(waiter->event);
	if (ret < 0)
		report_fail(waiter->report, ret, "cannot destroy the %s event: %s", waiter->name,
			    strerror(-ret));
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
	int ret;

	waiter_expect(waiter);
	ret = thunk_event_set(waiter->event, true);
	if (ret < 0)
		return report_fail(waiter->report, ret, "cannot set %s event %u: %s", waiter->name,
				   waiter->event->id, strerror(-ret));
	return 0;
}

int waiter_settle(struct waiter *waiter)
{
	for (long i = 0; !waiter_is_ready(waiter); i++) {
		if (report_failed(waiter->report))
			return -EIO;
		if (i == SETTLE_STEPS)
			return report_fail(waiter->report, -ETIME,
					   "%s event %u is lost: %" PRIu64 " set, %" PRIu64 " seen",
					   waiter->name, waiter->event->id, waiter->sent,
					   waiter->seen);
		(void)usleep(SETTLE_STEP_US);
	}
	return 0;
}

uint64_t waiter_count(struct waiter *waiter)
{
	return __atomic_load_n(&waiter->seen, __ATOMIC_ACQUIRE);
}
