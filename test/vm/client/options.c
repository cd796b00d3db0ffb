/* SPDX-License-Identifier: GPL-2.0-only */
/* Parses the command line of gpu_client; what an option does is decided elsewhere. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
	"usage: gpu_client --log FILE [OPTION...]\n"
	"  --gpus all|I,J,...         GPUs to use, by position (all)\n"
	"  --sizes small|medium|full  buffers on each GPU: 6 MiB, 129 MiB, 801 MiB (small)\n"
	"  --depth N                  batches that are in each queue at a time, 1 to 64 (4)\n"
	"  --filler KIB               an extra copy in each batch, up to 4096 (0)\n"
	"  --pace USEC                rest after each batch (20000 times the number of queues)\n"
	"  --many N                   so many more buffers of 4 KiB on the first GPU (0)\n"
	"  --tree N                   N such clients, children of a process without a GPU\n"
	"  --render-first             a render node is opened before /dev/kfd\n"
	"  --compute-first            the render node that it computes through is, too, below /dev/kfd\n"
	"  --second-kfd               /dev/kfd is opened a second time\n"
	"  --gem-bo                   a GEM object of a render node, until SIGUSR2\n"
	"  --undumpable               a file that no CRIU can dump, until SIGUSR2\n"
	"  --fork-child               a child that has inherited the descriptors\n"
	"  --split-mapping            a page of a VRAM mapping is made read-only\n"
	"  --shared                   all of a tree count in one buffer of the GPU\n"
	"  --kernel                   a compute queue on each GPU, with a kernel that is in its loop\n"
	"  --self-test-chain          no GPU: shows what the chain notices\n"
	"SIGUSR1: verify, report, go on. SIGTERM: verify, report, exit.\n";

enum number {
	NUMBER_TREE = 256,
	NUMBER_DEPTH,
	NUMBER_FILLER,
	NUMBER_PACE,
	NUMBER_MANY,
	FLAG_RENDER_FIRST,
	FLAG_COMPUTE_FIRST,
	FLAG_SECOND_KFD,
	FLAG_GEM_BO,
	FLAG_UNDUMPABLE,
	FLAG_FORK_CHILD,
	FLAG_SPLIT_MAPPING,
	FLAG_SELF_TEST_CHAIN,
	FLAG_SHARED,
	FLAG_KERNEL,
};

static const struct option long_options[] = {
	{ "gpus", required_argument, NULL, 'g' },
	{ "sizes", required_argument, NULL, 's' },
	{ "log", required_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ "tree", required_argument, NULL, NUMBER_TREE },
	{ "depth", required_argument, NULL, NUMBER_DEPTH },
	{ "filler", required_argument, NULL, NUMBER_FILLER },
	{ "pace", required_argument, NULL, NUMBER_PACE },
	{ "many", required_argument, NULL, NUMBER_MANY },
	{ "render-first", no_argument, NULL, FLAG_RENDER_FIRST },
	{ "compute-first", no_argument, NULL, FLAG_COMPUTE_FIRST },
	{ "second-kfd", no_argument, NULL, FLAG_SECOND_KFD },
	{ "gem-bo", no_argument, NULL, FLAG_GEM_BO },
	{ "undumpable", no_argument, NULL, FLAG_UNDUMPABLE },
	{ "fork-child", no_argument, NULL, FLAG_FORK_CHILD },
	{ "split-mapping", no_argument, NULL, FLAG_SPLIT_MAPPING },
	{ "self-test-chain", no_argument, NULL, FLAG_SELF_TEST_CHAIN },
	{ "shared", no_argument, NULL, FLAG_SHARED },
	{ "kernel", no_argument, NULL, FLAG_KERNEL },
	{ 0 },
};

static int options_number(int option, const char *text, struct options *options)
{
	static const struct {
		unsigned long least, most;
	} bounds[] = {
		[NUMBER_TREE - NUMBER_TREE] = { 1, 64 },
		[NUMBER_DEPTH - NUMBER_TREE] = { 1, 64 },
		[NUMBER_FILLER - NUMBER_TREE] = { 0, 4096 },
		[NUMBER_PACE - NUMBER_TREE] = { 1, 10000000 },
		[NUMBER_MANY - NUMBER_TREE] = { 0, 1000000 },
	};
	unsigned int *const places[] = { &options->tree, &options->job.depth,
					 &options->job.filler_kib, &options->job.pace_us,
					 &options->many };
	unsigned int which = (unsigned int)option - NUMBER_TREE;
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value < bounds[which].least ||
	    value > bounds[which].most) {
		fprintf(stderr, "gpu_client: %s is not a number from %lu to %lu\n", text,
			bounds[which].least, bounds[which].most);
		return -EINVAL;
	}
	*places[which] = (unsigned int)value;
	return 0;
}

static int options_flag(int option, struct options *options)
{
	bool *const places[] = {
		&options->extras.render_first,
		&options->extras.compute_first,
		&options->extras.second_kfd,
		&options->extras.gem_bo,
		&options->extras.undumpable,
		&options->extras.fork_child,
		&options->split_mapping,
		&options->self_test_chain,
		&options->shared,
		&options->job.kernel,
	};

	*places[option - FLAG_RENDER_FIRST] = true;
	return 0;
}

static int options_take(int option, struct options *options)
{
	if (option >= FLAG_RENDER_FIRST)
		return options_flag(option, options);
	if (option >= NUMBER_TREE)
		return options_number(option, optarg, options);

	switch (option) {
	case 'g':
		options->job.gpus = optarg;
		return 0;
	case 'l':
		options->log = optarg;
		return 0;
	case 's':
		if (buffers_parse_sizes(optarg, &options->job.buffers.sizes) == 0)
			return 0;
		fprintf(stderr, "gpu_client: --sizes %s: small, medium or full\n", optarg);
		return -EINVAL;
	case 'h':
		fputs(help, stdout);
		return 1;
	default:
		fputs(help, stderr);
		return -EINVAL;
	}
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	struct options options = { .job = { .gpus = "all", .depth = 4 } };
	int option, ret;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		ret = options_take(option, &options);
		if (ret != 0)
			return ret;
	}
	if (optind != argc || (!options.log && !options.self_test_chain)) {
		fputs(help, stderr);
		return -EINVAL;
	}
	*ret_options = options;
	return 0;
}
