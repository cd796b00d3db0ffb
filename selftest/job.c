// SPDX-License-Identifier: GPL-2.0-only
#include "job.h"

#include "pattern.h"
#include "probe.h"

#define TRANSFER_RING_BYTES 16384

int job_open(struct job *job)
{
	return gpus_open(job->report, job->options->gpus, &job->gpus);
}

int job_fill(struct job *job)
{
	int ret = 0;

	for (int i = 0; ret == 0 && i < job->gpus.count; i++)
		ret = sdma_open(job->report, &job->gpus.list[i], MEMORY_GTT, TRANSFER_RING_BYTES,
				&job->transfer[i]);
	if (ret == 0)
		ret = buffers_new(job->report, &job->gpus, job->transfer, &job->options->buffers,
				  &job->buffers);
	if (ret == 0)
		ret = events_new(job->report, &job->gpus.list[0], &job->events);
	return ret;
}

static int start_chain(struct job *job, int gpu, uint64_t *counter)
{
	const struct job_options *options = job->options;
	const struct chain_options chain_options = {
		.depth = options->depth,
		.filler_kib = options->filler_kib,
		.pace_us = options->pace_us,
		.counter = counter,
		.key = pattern_key(options->buffers.instance, UINT32_MAX, (uint32_t)gpu),
	};

	return chain_start(job->report, &job->gpus.list[gpu], &chain_options, &job->chains[gpu]);
}

int job_run(struct job *job, uint64_t *counter)
{
	const struct gpu *gpus = job->gpus.list;
	int ret = 0;

	for (int i = 0; ret == 0 && i < job->gpus.count; i++)
		ret = start_chain(job, i, i == 0 ? counter : NULL);
	for (int i = 0; ret == 0 && job->options->kernel && i < job->gpus.count; i++)
		ret = compute_new(job->report, &gpus[i], &job->computes[i]);
	for (int i = 0; ret == 0 && job->options->packets && i < job->gpus.count; i++)
		ret = packets_new(job->report, &gpus[i], &job->packets[i]);
	return ret;
}

static int verify_devices(struct job *job, uint64_t *ret_packets)
{
	int ret = 0;

	*ret_packets = 0;
	for (int i = 0; ret == 0 && i < job->gpus.count; i++) {
		uint64_t more = 0;

		ret = chain_verify(job->chains[i], &more);
		if (ret == 0)
			ret = compute_verify(job->computes[i]);
		if (ret == 0)
			ret = packets_verify(job->packets[i]);
		*ret_packets += more;
	}
	return ret;
}

static int probe(struct job *job)
{
	int ret = probe_event(job->report);

	for (int i = 0; ret == 0 && i < job->gpus.count; i++)
		ret = probe_memory(job->report, &job->gpus.list[i], &job->transfer[i]);
	return ret;
}

int job_verify(struct job *job, uint64_t *ret_packets)
{
	int ret = 0;

	/* The buffers are compared by way of the transfer queues, which have been idle until now.
	 */
	for (int i = 0; ret == 0 && i < job->gpus.count; i++)
		ret = sdma_check_idle(&job->transfer[i]);
	if (ret == 0)
		ret = buffers_verify(job->buffers);
	if (ret == 0)
		ret = verify_devices(job, ret_packets);
	if (ret == 0)
		ret = events_verify(job->events);
	return ret ? ret : probe(job);
}

int job_mutate(struct job *job)
{
	int ret = buffers_mutate(job->buffers);

	for (int i = 0; ret == 0 && i < job->gpus.count; i++) {
		ret = compute_begin(job->computes[i]);
		if (ret == 0)
			ret = packets_begin(job->packets[i]);
	}
	return ret ? ret : events_mutate(job->events);
}

void job_done(struct job *job)
{
	for (int i = 0; i < job->gpus.count; i++)
		chain_stop(job->chains[i]);
	for (int i = 0; i < job->gpus.count; i++) {
		compute_free(job->computes[i]);
		packets_free(job->packets[i]);
	}
	events_free(job->events);
	buffers_free(job->buffers);
	for (int i = 0; i < job->gpus.count; i++)
		sdma_close(&job->transfer[i]);
}

uint64_t job_in_flight(const struct job *job)
{
	uint64_t bytes = 0;

	for (int i = 0; i < job->gpus.count; i++)
		bytes += chain_in_flight(job->chains[i]);
	return bytes;
}

unsigned int job_events(const struct job *job)
{
	return events_count(job->events) + (unsigned int)job->gpus.count;
}
