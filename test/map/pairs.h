/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads pairs of machines with the expected mapping: a file pairs.tsv beside directories like
 * /sys/class/kfd/kfd/topology. */
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
	bool agrees;
};

/* Calls @take with each pair of @directory. Returns the number of pairs, or -errno with a line on
 * stderr. */
int pairs_for_each(const char *directory, void (*take)(struct pair *pair, void *argument),
		   void *argument);

/* The name of an outcome in pairs.tsv. */
const char *pair_outcome(enum map_outcome outcome);

/* The reason of a map as pairs.tsv writes it, for example "no-candidate:fw_version 7cd". */
void pair_reason(const struct gpu_map *map, char *text, size_t size);

/* Maps, logs the answer and frees the map. Returns what explain_map() returns. */
int pair_explain(const struct topology *source, const struct topology *destination,
		 const struct map_options *options);

/* Maps the pair, and compares the answer with the file. */
void pair_answer(const struct pair *pair, struct answer *ret_answer);

/* All checks on. */
struct map_options pair_options(void);

#endif
