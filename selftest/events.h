/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of KFD: threads that sleep on them, and events whose state must survive. */
#ifndef SELFTEST_EVENTS_H
#define SELFTEST_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "report.h"
#include "thunk.h"

/* A thread that sleeps on an auto-reset event. Each time the event is set it wakes up once. */
struct waiter {
	struct report *report;
	const char *name;
	struct thunk_event *event;
	pthread_t thread;
	bool running;
	bool stop;
	uint64_t sent;
	uint64_t seen;
};

int waiter_start(struct report *report, const char *name, struct waiter *waiter);
/* Wakes the thread a last time and destroys the event. */
void waiter_stop(struct waiter *waiter);

/* True when everything sent was seen, so that the event may be set again. One sender only. */
bool waiter_is_ready(struct waiter *waiter);
/* To be called before the event is set. */
void waiter_expect(struct waiter *waiter);
/* Sets the event from the CPU. */
int waiter_set(struct waiter *waiter);
/* Waits until everything sent was seen; -ETIME, reported, when an event got lost. */
int waiter_settle(struct waiter *waiter);
uint64_t waiter_count(struct waiter *waiter);

struct events;

/* Creates events of several types in several states, and a thread pair that keeps signalling. */
int events_new(struct report *report, const struct gpu *gpu, struct events **ret_events);
void events_free(struct events *events);

/* Compares the state of every event with what it must be, and sees the
 * thread pair make progress. */
int events_verify(struct events *events);
/* Gives the events other states. */
int events_mutate(struct events *events);

unsigned int events_count(const struct events *events);

#endif
