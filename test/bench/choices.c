// SPDX-License-Identifier: GPL-2.0-only
/* The command line of the benchmark. bench.c measures what it chooses. */
#include <errno.h>
#include <stddef.h>
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

static const struct {
	char letter;
	enum { WORD, NUMBER, LARGE, SECONDS, SWITCH } kind;
	size_t offset; /* in struct bench */
} fields[] = {
	{ 's', WORD, offsetof(struct bench, storage) },
	{ 'D', WORD, offsetof(struct bench, places.directory) },
	{ 'e', WORD, offsetof(struct bench, engine) },
	{ 'g', NUMBER, offsetof(struct bench, gpus) },
	{ 'n', NUMBER, offsetof(struct bench, rounds) },
	{ 'm', LARGE, offsetof(struct bench, most_bytes) },
	{ 'l', LARGE, offsetof(struct bench, latency_us) },
	{ 'q', SECONDS, offsetof(struct bench, patience_s) },
	{ 'z', SWITCH, offsetof(struct bench, half_zero) },
	{ 'c', SWITCH, offsetof(struct bench, checksums_only) },
	{ 'k', SWITCH, offsetof(struct bench, kept_only) },
	{ 'r', SWITCH, offsetof(struct bench, reads_only) },
	{ 'A', SWITCH, offsetof(struct bench, real) },
	{ 'C', SWITCH, offsetof(struct bench, cuda) },
	{ 'P', SWITCH, offsetof(struct bench, proof_only) },
};

/* -EINVAL: there is no such option. */
static int fill_field(int letter, const char *value, struct bench *bench)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		void *field = (char *)bench + fields[i].offset;

		if (fields[i].letter != letter)
			continue;
		if (fields[i].kind == WORD)
			*(const char **)field = value;
		else if (fields[i].kind == NUMBER)
			*(unsigned int *)field = (unsigned int)atoi(value);
		else if (fields[i].kind == LARGE)
			*(uint64_t *)field = strtoull(value, NULL, 10);
		else if (fields[i].kind == SECONDS)
			*(double *)field = strtod(value, NULL);
		else
			*(bool *)field = true;
		return 0;
	}
	return -EINVAL;
}

static int parse(int argc, char **argv, struct bench *bench)
{
	int option, ret = 0;

	while (!ret && (option = getopt(argc, argv, "d:s:D:g:e:m:n:l:zckrw:q:ACP")) >= 0) {
		if (option == 'd')
			bench->save = !strcmp(optarg, "dump");
		else if (option == 'w')
			ret = parse_ways(optarg, bench) ? 0 : -EINVAL;
		else
			ret = fill_field(option, optarg, bench);
	}
	if (ret < 0 || argc - optind != 2)
		return -EINVAL;
	bench->most_bytes *= MIB;
	bench->save &= !bench->reads_only && !bench->proof_only;
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
