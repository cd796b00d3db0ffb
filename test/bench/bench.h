/* SPDX-License-Identifier: GPL-2.0-only */
/* One case of the benchmark: what is chosen on the command line, and what is measured. */
#ifndef TEST_BENCH_BENCH_H
#define TEST_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "content/content.h"
#include "places.h"
#include "subject.h"

#define ROUNDS_MAX 32
/* If other processes disturb rounds, up to so many times as many rounds are measured. */
#define ROUNDS_FACTOR 3
/* The number of storage methods that each round tries. */
#define BEST_WAYS 2

enum method {
	REFERENCE,
	OURS,
	COPY,
	STORAGE,
	METHODS,
};

struct round {
	double wall[METHODS];
	/* Of the plugin. */
	double cpu;
	/* Processor time of other processes meanwhile, in percent of all processor time. */
	double others;
};

struct bench {
	const char *name, *words, *storage, *engine;
	struct places places;
	uint64_t most_bytes, latency_us;
	unsigned int gpus, rounds;
	bool save, half_zero, checksums_only, kept_only, reads_only;
	/* A CUDA device is the copy engine, or a GPU of this machine is, without the simulator.
	 * With proof_only, the bytes that the simulator's engine or the CUDA device moves are
	 * compared, and nothing is measured. */
	bool cuda, real, proof_only;
	/* Methods of storage alone: the best, the second best, and the current one. */
	unsigned int ways[BEST_WAYS], way;
	bool ways_known;
	double patience_s;
	struct subject subject;
	struct content_settings settings;
	double gbps;
	struct round measured[ROUNDS_MAX * ROUNDS_FACTOR];
	uint64_t staging_bytes;
	long peak_kib;
};

/* Fills @bench with the options of the command line, or prints them and returns -EINVAL. */
int choices_parse(int argc, char **argv, struct bench *bench);

#endif
