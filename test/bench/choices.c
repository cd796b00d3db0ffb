// SPDX-License-Identifier: GPL-2.0-only
/* The command line of the benchmark. bench.c measures what it chooses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "methods.h"

#define MIB (1u << 20)

static void usage(void)
{
	(void)fprintf(
		stderr,
		"bench [OPTION]... NAME WORDS\n"
		"  -d dump|restore  -s tmpfs|disk|stream  -D DIRECTORY  -g GPUS  -e GB/S|match\n"
		"  -m MIB  at most, by scaling sizes   -n ROUNDS  -l MICROSECONDS of engine latency\n"
		"  -q  SECONDS, in all, to wait for a quiet machine and to repeat rounds\n"
		"  -z  half of the bytes are zero      -c  only what the checksums cost\n"
		"  -k  only dumps of one GPU with memory for all contents\n"
		"  -r  only a restore, and its reads and checksums alone\n"
		"  -w WAY:WAY  of storage alone, if it is known which are the best\n"
		"  -A  the GPU of this machine is the copy engine, and there is no simulator\n"
		"  -C  a CUDA device is the copy engine\n"
		"  -P  moves bytes and compares them, with -C by that device; no times\n"
		"bench -H  seconds for the sums of 10^9 bytes\n"
		"  WORDS: see test/native/workload.h\n");
}

static bool parse_ways(const char *text, struct bench *bench)
{
	unsigned int *ways = bench->ways;

	bench->ways_known = sscanf(text, "%u:%u", &ways[0], &ways[1]) == BEST_WAYS &&
			    ways[0] < num_storage_ways && ways[1] < num_storage_ways;
	return bench->ways_known;
}

static int check_choices(struct bench *bench)
{
	if (!bench->rounds || bench->rounds > ROUNDS_MAX || !bench->gpus)
		return -EINVAL;
	if (bench->kept_only &&
	    (!bench->save || bench->gpus > 1 || !strcmp(bench->storage, "stream")))
		return -EINVAL;
	if (bench->reads_only && !strcmp(bench->storage, "stream"))
		return -EINVAL;
	if (bench->real && bench->proof_only)
		return -EINVAL;
	if (!strcmp(bench->storage, "stream"))
		bench->places.directory = NULL;
	return 0;
}

/* -EINVAL: unknown. */
static int parse_number(int option, const char *value, struct bench *bench)
{
	switch (option) {
	case 'g':
		bench->gpus = (unsigned int)atoi(value);
		return 0;
	case 'm':
		bench->most_bytes = strtoull(value, NULL, 10) * MIB;
		return 0;
	case 'n':
		bench->rounds = (unsigned int)atoi(value);
		return 0;
	case 'l':
		bench->latency_us = strtoull(value, NULL, 10);
		return 0;
	case 'q':
		bench->patience_s = strtod(value, NULL);
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse_word(int option, const char *value, struct bench *bench)
{
	switch (option) {
	case 'd':
		bench->save = !strcmp(value, "dump");
		return 0;
	case 's':
		bench->storage = value;
		return 0;
	case 'D':
		bench->places.directory = value;
		return 0;
	case 'e':
		bench->engine = value;
		return 0;
	case 'w':
		return parse_ways(value, bench) ? 0 : -EINVAL;
	default:
		return parse_number(option, value, bench);
	}
}

static int parse_switch(int option, struct bench *bench)
{
	switch (option) {
	case 'z':
		bench->half_zero = true;
		return 0;
	case 'c':
		bench->checksums_only = true;
		return 0;
	case 'k':
		bench->kept_only = true;
		return 0;
	case 'r':
		bench->reads_only = true;
		bench->save = false;
		return 0;
	case 'A':
		bench->real = true;
		return 0;
	case 'P':
		bench->proof_only = true;
		bench->save = false;
		return 0;
	case 'C':
		bench->cuda = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse(int argc, char **argv, struct bench *bench)
{
	int option, ret = 0;

	while (!ret && (option = getopt(argc, argv, "d:s:D:g:e:m:n:l:zckrw:q:ACP")) >= 0)
		ret = optarg ? parse_word(option, optarg, bench) : parse_switch(option, bench);
	if (ret < 0 || argc - optind != 2)
		return -EINVAL;
	bench->name = argv[optind];
	bench->words = argv[optind + 1];
	return check_choices(bench);
}

int choices_parse(int argc, char **argv, struct bench *bench)
{
	int ret = parse(argc, argv, bench);

	if (ret < 0)
		usage();
	return ret;
}
