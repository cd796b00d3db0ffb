/* SPDX-License-Identifier: GPL-2.0-only */
/* Puts a client together from its parts and answers the signals. The parts know how to make,
 * compare and free their own things. */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "many.h"
#include "shared.h"

/* However many queues there are, together they rest so long between batches. */
#define PACE_US 20000

struct client {
	struct report *report;
	const struct options *options;
	struct job_options job_options;
	struct job job;
	struct extras extras;
	struct many *many;
	struct shared shared;
};

static uint32_t instance_of(const struct client *client)
{
	return client->job_options.buffers.instance;
}

static void client_choose_pace(struct client *client)
{
	/* Of all processes of a tree. */
	unsigned int processes = client->options->tree ? client->options->tree : 1;

	client->job_options.pace_us = PACE_US * processes * (unsigned int)client->job.gpus.count;
}

static int client_start_more(struct client *client)
{
	const struct options *options = client->options;
	struct gpu *gpu = &client->job.gpus.list[0];
	int ret = 0;

	if (options->many)
		ret = many_new(client->report, client->extras.kfd_fd, gpu, &client->job.transfer[0],
			       options->many, instance_of(client), &client->many);
	if (ret == 0 && options->shared)
		ret = shared_open(client->report, gpu, options->shared_fd, &client->shared);
	return ret;
}

static int client_start(struct client *client)
{
	const struct options *options = client->options;
	uint64_t *counter = NULL;
	int ret;

	ret = extras_init(client->report, &options->extras, options->job.gpus, &client->extras);
	if (ret == 0)
		ret = job_open(&client->job);
	if (ret == 0)
		ret = extras_open(&client->extras);
	if (ret == 0)
		ret = job_fill(&client->job);
	if (ret == 0)
		ret = client_start_more(client);
	if (ret < 0)
		return ret;
	client_choose_pace(client);
	if (client->shared.words)
		counter = client->shared.words + instance_of(client);
	ret = job_run(&client->job, counter);
	if (ret == 0 && options->split_mapping)
		ret = buffers_split_mapping(client->job.buffers);
	if (ret == 0)
		ret = extras_open_last(&client->extras);
	return ret;
}

static void client_stop(struct client *client)
{
	many_free(client->many);
	job_done(&client->job);
	shared_close(&client->shared);
	extras_done(&client->extras);
	gpus_close();
}

static uint64_t client_bytes(const struct client *client)
{
	return buffers_bytes(client->job.buffers) + (uint64_t)client->options->many * MANY_BYTES;
}

static unsigned int client_buffers(const struct client *client)
{
	return buffers_count(client->job.buffers) + client->options->many;
}

static int client_verify(struct client *client)
{
	uint64_t packets = 0;
	int ret;

	report_line(client->report, "verifying, %" PRIu64 " bytes of packets in flight",
		    job_in_flight(&client->job));
	ret = job_verify(&client->job, &packets);
	if (ret == 0)
		ret = many_verify(client->many);
	if (ret == 0)
		ret = extras_verify(&client->extras);
	if (ret == 0 && client->shared.words)
		ret = shared_report(&client->shared, &client->job.transfer[0], instance_of(client),
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
		    client_bytes(client), client_buffers(client), packets,
		    job_events(&client->job));
	return 0;
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
			ret = job_mutate(&client->job);
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
	client->job_options = options->job;
	client->job_options.buffers.instance = instance;
	client->job = (struct job){ .report = report, .options = &client->job_options };
	if (client_start(client) < 0)
		return 1;

	report_line(report, "ready %" PRIu64 " bytes in %u buffers on %d GPUs",
		    client_bytes(client), client_buffers(client), client->job.gpus.count);
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
