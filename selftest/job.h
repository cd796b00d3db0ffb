/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process has on its GPUs for a checkpoint to preserve: all its parts, made, verified,
 * changed and freed together. */
#ifndef SELFTEST_JOB_H
#define SELFTEST_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "buffers.h"
#include "chain.h"
#include "compute.h"
#include "events.h"
#include "gpus.h"
#include "packets.h"
#include "report.h"
#include "sdma.h"

struct job_options {
	const char *gpus; /* for gpus_open() */
	struct buffers_options buffers;
	unsigned int depth, filler_kib, pace_us; /* of each chain */
	bool kernel;                             /* a compute queue with a kernel in its loop */
	bool packets;                            /* a compute queue with packets only */
};

struct job {
	struct report *report;
	const struct job_options *options;
	struct gpus gpus;
	struct sdma_queue transfer[GPUS_MAX]; /* idle but while contents are moved */
	struct chain *chains[GPUS_MAX];
	struct compute *computes[GPUS_MAX]; /* each may be NULL */
	struct packets *packets[GPUS_MAX];  /* each may be NULL */
	struct buffers *buffers;
	struct events *events;
};

/* The three steps of the start. @job begins all zero, but for report and options. Failures are
 * reported. */
int job_open(struct job *job);
int job_fill(struct job *job);
/* @counter: the first GPU's chain counts it up with each batch; may be NULL. */
int job_run(struct job *job, uint64_t *counter);

/* Compares everything. *ret_packets: of the chains, since the start. */
int job_verify(struct job *job, uint64_t *ret_packets);
/* After job_verify(): the next dump shall not find what the last one found. */
int job_mutate(struct job *job);
void job_done(struct job *job);

/* Bytes of packets that the engines have not executed at this moment. */
uint64_t job_in_flight(const struct job *job);
unsigned int job_events(const struct job *job);

#endif
