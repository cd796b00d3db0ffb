// SPDX-License-Identifier: GPL-2.0-only
/* The job of criu-amdgpu selftest: a process that uses GPUs by plain ioctls, in all the ways that a
 * checkpoint must preserve, and that can tell whether it did. serve.h says which signals it
 * answers, and with which lines of its log. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "engine.h"
#include "job.h"
#include "options.h"
#include "serve.h"
#include "share.h"

/* With all GPUs, the chains rest so long together. */
#define PACE_US 2000

struct arguments {
	struct job_options job;
	const char *log;
	bool shares; /* two processes with shared buffers, in place of the job */
};

static bool read_options(char **argv, struct arguments *arguments)
{
	struct job_options *options = &arguments->job;
	const char *name = NULL;
	const struct choice choices[] = {
		{ "--log", .text = &arguments->log, .is_needed = true },
		{ "--name", .text = &name },
		{ "--gpus", .text = &options->gpus },
		{ "--bytes", .large_number = &options->buffers.bulk_bytes },
		{ "--files", .flag = &options->buffers.files },
		{ "--kernel", .flag = &options->kernel },
		{ "--packets", .flag = &options->packets },
		{ "--share", .flag = &arguments->shares },
		{ 0 },
	};

	if (!options_parse(argv, choices))
		return false;
	/* Of the thread that opens the GPUs. */
	if (name)
		(void)prctl(PR_SET_NAME, name);
	return true;
}

static bool set_up(void *arg)
{
	struct job *job = arg;

	if (job_open(job) || job_fill(job))
		return false;
	if (job->gpus.count == 1 &&
	    engine_measure(job->report, &job->gpus.list[0], &job->transfer[0]))
		return false;
	return !job_run(job, NULL);
}

/* job_run() has begun already. */
static bool begin(void *arg)
{
	static bool has_begun;
	struct job *job = arg;

	if (has_begun)
		return !job_mutate(job);
	has_begun = true;
	return true;
}

static bool verify(void *arg)
{
	struct job *job = arg;
	uint64_t flight = job_in_flight(job), packets = 0;

	if (job_verify(job, &packets) < 0 || report_failed(job->report))
		return false;
	report_line(job->report,
		    "compared %" PRIu64 " bytes in %u buffers, %" PRIu64
		    " packets, %u events; %" PRIu64 " bytes of packets were in flight",
		    buffers_bytes(job->buffers), buffers_count(job->buffers), packets,
		    job_events(job), flight);
	return true;
}

static bool tear_down(void *arg)
{
	job_done(arg);
	gpus_close();
	return true;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.job = { .gpus = "all", .depth = 16, .filler_kib = 64, .pace_us = PACE_US },
	};
	struct report report;
	struct job job = { .report = &report, .options = &arguments.job };
	const struct serve life = {
		.report = &report,
		.arg = &job,
		.set_up = set_up,
		.begin = begin,
		.verify = verify,
		.tear_down = tear_down,
	};

	(void)argc;
	if (!read_options(argv, &arguments)) {
		(void)fprintf(stderr, "selftest-job: criu-amdgpu selftest starts this program\n");
		return 2;
	}
	report_init(&report, arguments.log);
	return arguments.shares ? share_run(&report, arguments.job.gpus) : serve(&life);
}
