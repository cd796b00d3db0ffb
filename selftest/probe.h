/* SPDX-License-Identifier: GPL-2.0-only */
/* New work for a process that may have been restored: things made now must work
 * as those made before. */
#ifndef SELFTEST_PROBE_H
#define SELFTEST_PROBE_H

#include "gpus.h"
#include "report.h"
#include "sdma.h"

/* Allocates, maps, writes, copies, compares and frees a buffer of each kind, with @queue. */
int probe_memory(struct report *report, const struct gpu *gpu, struct sdma_queue *queue);

/* Creates, sets, sees and destroys an event. */
int probe_event(struct report *report);

#endif
