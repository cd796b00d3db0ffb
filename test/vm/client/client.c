/* SPDX-License-Identifier: GPL-2.0-only */
/* Puts a client together from its parts and answers the signals. The parts know how to make,
 * compare and free their own things. */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "buffers.h"
#include "chain.h"
#include "compute.h"
#include "events.h"
#include "extras.h"
#include "gpus.h"
#include "many.h"
#include "pattern.h"
#include "probe.h"
#include "sdma.h"
#include "shared.h"

#define TRANSFER_RING_BYTES 16384
/* However many queues there are, together they rest so long between batches. */
#define PACE_US 20000

struct client {
	struct report *report;
	const struct options *options;
	uint32_t instance;
	struct extras extras;
	struct gpus gpus;
	struct sdma_queue transfer[GPUS_MAX]; /* idle but while contents are moved */
	struct chain *chains[GPUS_MAX];
	struct compute *computes[GPUS_MAX]; /* each NULL without --kernel */
	struct buffers *buffers;
	struct many *many;
	struct shared shared;
	struct events *events;
};

/* Of all processes of a tree. */
static unsigned int client_chains(const struct client *client)
{
	unsigned int processes = client->options->tree ? client->options->tree : 1;

	return processes * (unsigned int)client->gpus.count;
}

static int client_start_chains(struct client *client)
{
	struct chain_options chain_options = {
		.depth = client->options->depth,
		.filler_kib = client->options->filler_kib,
		.pace_us = client->options->pace_us,
	};
	int ret = 0;

	if (!chain_options.pace_us)
		chain_options.pace_us = PACE_US * client_chains(client);
	for (int i = 0; ret == 0 && i < client->gpus.count; i++) {
		if (i == 0 && client->shared.words)
			chain_options.counter = client->shared.words + client->instance;
		else
			chain_options.counter = NULL;
		chain_options.key = pattern_key(client->instance, UINT32_MAX, (uint32_t)i);
		ret = chain_start(client->report, &client->gpus.list[i], &chain_options,
				  &client->chains[i]);
	}
	return ret;
}

static int client_start(struct client *client)
{
	const struct options *options = client->options;
	int ret;

	ret = extras_init(client->report, &options->extras, options->gpus, &client->extras);
	if (ret == 0)
		ret = gpus_open(client->report, options->gpus, &client->gpus);
	if (ret == 0)
		ret = extras_open(&client->extras);
	for (int i = 0; ret == 0 && i < client->gpus.count; i++)
		ret = sdma_open(client->report, &client->gpus.list[i], MEMORY_GTT,
				TRANSFER_RING_BYTES, &client->transfer[i]);
	if (ret == 0)
		ret = buffers_new(client->report, &client->gpus, client->transfer, options->sizes,
				  client->instance, &client->buffers);
	if (ret == 0 && options->many)
		ret = many_new(client->report, client->extras.kfd_fd, &client->gpus.list[0],
			       &client->transfer[0], options->many, client->instance,
			       &client->many);
	if (ret == 0)
		ret = events_new(client->report, client->gpus.list[0].node, &client->events);
	if (ret == 0 && options->shared)
		ret = shared_open(client->report, &client->gpus.list[0], options->shared_fd,
				  &client->shared);
	if (ret == 0)
		ret = client_start_chains(client);
	for (int i = 0; ret == 0 && options->kernel && i < client->gpus.count; i++)
		ret = compute_new(client->report, &client->gpus.list[i], &client->computes[i]);
	if (ret == 0 && options->split_mapping)
		ret = buffers_split_mapping(client->buffers);
	if (ret == 0)
		ret = extras_open_last(&client->extras);
	return ret;
}

static void client_stop(struct client *client)
{
	for (int i = 0; i < client->gpus.count; i++)
		chain_stop(client->chains[i]);
	for (int i = 0; i < client->gpus.count; i++)
		compute_free(client->computes[i]);
	events_free(client->events);
	many_free(client->many);
	buffers_free(client->buffers);
	shared_close(&client->shared);
	for (int i = 0; i < client->gpus.count; i++)
		sdma_close(&client->transfer[i]);
	extras_done(&client->extras);
	gpus_close();
}

static uint64_t client_bytes(const struct client *client)
{
	return buffers_bytes(client->buffers) + (uint64_t)client->options->many * MANY_BYTES;
}

static unsigned int client_buffers(const struct client *client)
{
	return buffers_count(client->buffers) + client->options->many;
}

static void client_report_in_flight(struct client *client)
{
	uint64_t bytes = 0;

	for (int i = 0; i < client->gpus.count; i++)
		bytes += chain_in_flight(client->chains[i]);
	report_line(client->report, "verifying, %" PRIu64 " bytes of packets in flight", bytes);
}

static int client_verify_devices(struct client *client, uint64_t *packets)
{
	int ret = 0;

	for (int i = 0; ret == 0 && i < client->gpus.count; i++) {
		uint64_t more = 0;

		ret = chain_verify(client->chains[i], &more);
		if (ret == 0)
			ret = compute_verify(client->computes[i]);
		*packets += more;
	}
	return ret;
}

static int client_probe(struct client *client)
{
	int ret = probe_event(client->report);

	for (int i = 0; ret == 0 && i < client->gpus.count; i++)
		ret = probe_memory(client->report, &client->gpus.list[i], &client->transfer[i]);
	return ret;
}

static int client_verify(struct client *client)
{
	unsigned int events = events_count(client->events) + (unsigned int)client->gpus.count;
	uint64_t packets = 0;
	int ret = 0;

	client_report_in_flight(client);
	/* The buffers are compared by way of the transfer queues, which have been idle until now.
	 */
	for (int i = 0; ret == 0 && i < client->gpus.count; i++)
		ret = sdma_check_idle(&client->transfer[i]);
	if (ret == 0)
		ret = buffers_verify(client->buffers);
	if (ret == 0)
		ret = many_verify(client->many);
	if (ret == 0)
		ret = client_verify_devices(client, &packets);
	if (ret == 0)
		ret = events_verify(client->events);
	if (ret == 0)
		ret = extras_verify(&client->extras);
	if (ret == 0)
		ret = client_probe(client);
	if (ret == 0 && client->shared.words)
		ret = shared_report(&client->shared, &client->transfer[0], client->instance,
				    client->options->tree);
	/* A thread may have seen something meanwhile. */
	if (ret == 0 && report_failed(client->report))
		ret = -EIO;
	if (ret < 0) {
		report_failed_again(client->report);
		return ret;
	}
	report_line(client->report,
		    "verified %" PRIu64 " bytes in %u buffers, %" PRIu64 " packets, %u events",
		    client_bytes(client), client_buffers(client), packets, events);
	return 0;
}

/* The next dump shall not find what the last one found. */
static int client_mutate(struct client *client)
{
	int ret = buffers_mutate(client->buffers);

	for (int i = 0; ret == 0 && i < client->gpus.count; i++)
		ret = compute_begin(client->computes[i]);
	return ret < 0 ? ret : events_mutate(client->events);
}

static void client_answer(struct client_answers *answers, uint32_t *counter)
{
	if (!answers)
		return;
	__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
	(void)kill(getppid(), SIGRTMIN);
}

static void client_serve(struct client *client, struct client_answers *answers)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	for (;;) {
		int ret;

		if (sigwait(&set, &signal))
			continue;
		if (signal == SIGUSR2) {
			extras_drop(&client->extras);
			report_line(client->report, "dropped");
			continue;
		}
		ret = client_verify(client);
		if (signal == SIGTERM)
			return;
		if (ret == 0)
			ret = client_mutate(client);
		if (answers)
			client_answer(answers, ret < 0 ? &answers->failed : &answers->verified);
	}
}

int client_run(struct report *report, const struct options *options, uint32_t instance,
	       struct client_answers *answers)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client) {
		report_fail(report, -ENOMEM, "no memory");
		return 1;
	}
	client->report = report;
	client->options = options;
	client->instance = instance;
	if (client_start(client) < 0)
		return 1;

	report_line(report, "ready %" PRIu64 " bytes in %u buffers on %d GPUs",
		    client_bytes(client), client_buffers(client), client->gpus.count);
	if (answers)
		client_answer(answers, &answers->ready);
	client_serve(client, answers);

	client_stop(client);
	free(client);
	if (report_failed(report))
		return 1;
	report_line(report, "finished ok");
	return 0;
}
