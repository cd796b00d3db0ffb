/* SPDX-License-Identifier: GPL-2.0-only */
/* Creates events, knows which state each must have and compares. The sleeping threads are waiters,
 * those set by queues belong to the chains. */
#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/kfd_ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"

/* Manual-reset events, in states that change from generation to generation. */
#define EVENTS_HELD 24
/* Auto-reset events that are set and that no thread waits for: the comparison consumes the signals.
 */
#define EVENTS_LATCHED 4
/* Of the types that a runtime creates and that never fire here. */
#define EVENTS_QUIET 2
#define TICK_US      20000

struct events {
	struct report *report;
	struct thunk_event *held[EVENTS_HELD];
	struct thunk_event *latched[EVENTS_LATCHED];
	struct thunk_event *quiet[EVENTS_QUIET];
	unsigned int generation;
	struct waiter pair;
	pthread_t ticker;
	bool ticking;
	bool stop;
};

static bool events_held_state(const struct events *events, unsigned int i)
{
	return pattern_mix((uint64_t)events->generation << 32 | i) & 1;
}

/* No event has the last slot of the event page, so it keeps what is written there. */
static uint64_t *events_spare_slot(const struct events *events)
{
	const struct thunk_event *event = events->held[0];

	return event->slot - event->id + KFD_SIGNAL_EVENT_LIMIT - 1;
}

static uint64_t events_spare_value(const struct events *events)
{
	return pattern_mix((uint64_t)events->generation << 32 | UINT32_MAX);
}

static int events_create(struct events *events, enum thunk_event_type type, const struct gpu *gpu,
			 bool manual, struct thunk_event **ret_event)
{
	int ret = thunk_event_new(type, gpu, manual, ret_event);

	if (ret < 0)
		return report_fail(events->report, ret, "cannot create an event of type %d: %s",
				   type, strerror(-ret));
	return 0;
}

static int events_set(struct events *events, struct thunk_event *event, bool state)
{
	int ret = thunk_event_set(event, state);

	if (ret < 0)
		return report_fail(events->report, ret, "cannot %s event %u: %s",
				   state ? "set" : "reset", event->id, strerror(-ret));
	return 0;
}

static int events_expect(struct events *events, struct thunk_event *event, bool state,
			 const char *what)
{
	int ret = thunk_event_wait(event, true);

	if (ret != (state ? 0 : -ETIME))
		return report_fail(events->report, -EILSEQ, "%s event %u: expected %s, got %d",
				   what, event->id, state ? "set" : "not set", ret);
	return 0;
}

static int events_apply(struct events *events)
{
	int ret = 0;

	for (unsigned int i = 0; ret == 0 && i < EVENTS_HELD; i++)
		ret = events_set(events, events->held[i], events_held_state(events, i));
	for (unsigned int i = 0; ret == 0 && i < EVENTS_LATCHED; i++)
		ret = events_set(events, events->latched[i], true);
	*events_spare_slot(events) = events_spare_value(events);
	return ret;
}

static void *events_tick(void *argument)
{
	struct events *events = argument;

	while (!__atomic_load_n(&events->stop, __ATOMIC_ACQUIRE)) {
		if (waiter_is_ready(&events->pair) && waiter_set(&events->pair) < 0)
			return NULL;
		(void)usleep(TICK_US);
	}
	return NULL;
}

static int events_fill(struct events *events, const struct gpu *gpu)
{
	int ret = 0, error;

	for (unsigned int i = 0; ret == 0 && i < EVENTS_HELD; i++)
		ret = events_create(events, THUNK_SIGNAL, gpu, true, &events->held[i]);
	for (unsigned int i = 0; ret == 0 && i < EVENTS_LATCHED; i++)
		ret = events_create(events, THUNK_SIGNAL, gpu, false, &events->latched[i]);
	if (ret == 0)
		ret = events_create(events, THUNK_MEMORY, gpu, false, &events->quiet[0]);
	if (ret == 0)
		ret = events_create(events, THUNK_HW_EXCEPTION, gpu, false, &events->quiet[1]);
	if (ret == 0)
		ret = events_apply(events);
	if (ret == 0)
		ret = waiter_start(events->report, "CPU", &events->pair);
	if (ret < 0)
		return ret;

	error = pthread_create(&events->ticker, NULL, events_tick, events);
	if (error)
		return report_fail(events->report, -error, "cannot start the signalling thread");
	events->ticking = true;
	return 0;
}

int events_new(struct report *report, const struct gpu *gpu, struct events **ret_events)
{
	struct events *events = calloc(1, sizeof(*events));
	int ret;

	if (!events)
		return report_fail(report, -ENOMEM, "no memory for the events");
	events->report = report;
	ret = events_fill(events, gpu);
	if (ret < 0) {
		events_free(events);
		return ret;
	}
	*ret_events = events;
	return 0;
}

static void events_destroy(struct events *events, struct thunk_event **list, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		int ret = list[i] ? thunk_event_free(list[i]) : 0;

		if (ret < 0)
			report_fail(events->report, ret, "cannot destroy an event: %s",
				    strerror(-ret));
	}
}

void events_free(struct events *events)
{
	if (!events)
		return;
	__atomic_store_n(&events->stop, true, __ATOMIC_RELEASE);
	if (events->ticking)
		pthread_join(events->ticker, NULL);
	waiter_stop(&events->pair);
	events_destroy(events, events->held, EVENTS_HELD);
	events_destroy(events, events->latched, EVENTS_LATCHED);
	events_destroy(events, events->quiet, EVENTS_QUIET);
	free(events);
}

/* The pair must not only be settled: it must go on. */
static int events_verify_pair(struct events *events)
{
	uint64_t until = waiter_count(&events->pair) + 2;
	int ret = 0;

	while (ret == 0 && waiter_count(&events->pair) < until) {
		ret = waiter_settle(&events->pair);
		(void)usleep(TICK_US);
	}
	return ret;
}

int events_verify(struct events *events)
{
	uint64_t spare = *events_spare_slot(events);
	int ret = 0;

	if (spare != events_spare_value(events))
		ret = report_fail(events->report, -EILSEQ,
				  "event page: expected %016" PRIx64
				  " in the last slot, got %016" PRIx64,
				  events_spare_value(events), spare);

	for (unsigned int i = 0; ret == 0 && i < EVENTS_HELD; i++)
		ret = events_expect(events, events->held[i], events_held_state(events, i), "held");
	for (unsigned int i = 0; ret == 0 && i < EVENTS_LATCHED; i++) {
		ret = events_expect(events, events->latched[i], true, "latched");
		if (ret == 0)
			ret = events_expect(events, events->latched[i], false, "consumed");
		if (ret == 0)
			ret = events_set(events, events->latched[i], true);
	}
	for (unsigned int i = 0; ret == 0 && i < EVENTS_QUIET; i++)
		ret = events_expect(events, events->quiet[i], false, "quiet");
	if (ret == 0)
		ret = events_verify_pair(events);
	return ret;
}

int events_mutate(struct events *events)
{
	events->generation++;
	return events_apply(events);
}

unsigned int events_count(const struct events *events)
{
	(void)events;
	return EVENTS_HELD + EVENTS_LATCHED + EVENTS_QUIET + 1;
}
