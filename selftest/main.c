// SPDX-License-Identifier: GPL-2.0-only
/* The job of criu-amdgpu selftest: a process that uses GPUs by plain ioctls, in all the ways that a
 * checkpoint must preserve, and that can tell whether it did. serve.h says which signals it
 * answers, and with which lines of its log. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "engine.h"
#include "job.h"
#include "serve.h"
#include "share.h"

/* With all GPUs, the chains rest so long together. */
#define PACE_US 2000

static const struct option long_options[] = {
	{ "log", required_argument, NULL, 'l' },
	{ "name", required_argument, NULL, 'n' },
	{ "gpus", required_argument, NULL, 'g' },
	{ "bytes", required_argument, NULL, 'b' },
	{ "files", no_argument, NULL, 'f' },
	{ "kernel", no_argument, NULL, 'k' },
	{ "packets", no_argument, NULL, 'p' },
	{ "share", no_argument, NULL, 's' },
	{ 0 },
};

struct arguments {
	struct job_options job;
	const char *log;
	bool shares; /* two processes with shared buffers, in place of the job */
};

static int read_options(int argc, char **argv, struct arguments *arguments)
{
	struct job_options *options = &arguments->job;
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
		switch (option) {
		case 'l':
			arguments->log = optarg;
			break;
		case 'n':
			/* Of the thread that opens the GPUs. */
			(void)prctl(PR_SET_NAME, optarg);
			break;
		case 'g':
			options->gpus = optarg;
			break;
		case 'b':
			options->buffers.bulk_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'f':
			options->buffers.files = true;
			break;
		case 'k':
			options->kernel = true;
			break;
		case 'p':
			options->packets = true;
			break;
		case 's':
			arguments->shares = true;
			break;
		default:
			return -EINVAL;
		}
	}
	return arguments->log && optind == argc ? 0 : -EINVAL;
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

	if (read_options(argc, argv, &arguments) < 0) {
		(void)fprintf(stderr, "selftest-job: criu-amdgpu selftest starts this program\n");
		return 2;
	}
	report_init(&report, arguments.log);
	return arguments.shares ? share_run(&report, arguments.job.gpus) : serve(&life);
}
