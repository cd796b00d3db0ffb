/* SPDX-License-Identifier: GPL-2.0-only */
/* Pairs of machines and the map that the rules give them: a pairs.tsv beside directories
 * laid out like /sys/class/kfd/kfd/topology. */
#ifndef TEST_MAP_PAIRS_H
#define TEST_MAP_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"
#include "criu/options.h"
#include "map/map.h"

#define PAIR_REASON_MAX 64

enum column {
	PAIR_ID,
	PAIR_SOURCE,
	PAIR_DESTINATION,
	PAIR_ENVIRONMENT,
	PAIR_OUTCOME,
	PAIR_MAPPING,
	PAIR_REASON,
	PAIR_CASE,
	PAIR_COLUMNS,
};

struct pair {
	char *line;
	const char *columns[PAIR_COLUMNS];
	struct topology source;
	struct topology destination;
	struct map_options options;
};

struct answer {
	const char *outcome;
	char mapping[4096];
	char reason[PAIR_REASON_MAX];
	uint64_t attempts;
	double seconds;
	bool agrees;
};

/* Calls @take with each pair of @directory. The number of pairs, or -errno after
 * a line on stderr. */
int pairs_for_each(const char *directory, void (*take)(struct pair *pair, void *argument),
		   void *argument);

/* What an outcome is called in the file. */
const char *pair_outcome(enum map_outcome outcome);

/* The reason of a map as pairs.tsv writes it, for example "no-candidate:fw_version 7cd". */
void pair_reason(const struct gpu_map *map, char *text, size_t size);

/* Maps, logs the answer and frees the map. Returns what map_explain() returns. */
int pair_explain(const struct topology *source, const struct topology *destination,
		 const struct map_options *options);

/* What the mapper says. */
void pair_answer(const struct pair *pair, struct answer *ret_answer);

/* Processor time of this process: on a machine that others use too, what a search costs. */
double pair_seconds(void);

/* All checks on. */
struct map_options pair_options(void);
/* Switches off what @environment ("NAME=0 NAME=0") says; false: a name is unknown. */
bool pair_switch_off(struct map_options *options, const char *environment);

#endif
