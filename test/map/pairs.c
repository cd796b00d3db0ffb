// SPDX-License-Identifier: GPL-2.0-only
/* Reads pairs.tsv and maps its pairs. */
#include "pairs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map/explain.h"

struct map_options pair_options(void)
{
	struct map_options options = { 0 };

#define SWITCH_ON(field, variable, kind, value) options.field = true;
	MAP_CHECKS(SWITCH_ON)
#undef SWITCH_ON
	return options;
}

/* Turns off the checks in @environment ("NAME=0 NAME=0"). False: a name is unknown. */
static bool parse_switches(struct map_options *options, const char *environment)
{
	while (*environment) {
		size_t length = strcspn(environment, " ");
		bool known = false;

#define SWITCH_OFF(field, variable, kind, value)                                                 \
	if (length == strlen(#variable "=0") && !strncmp(environment, #variable "=0", length)) { \
		options->field = false;                                                          \
		known = true;                                                                    \
	}
		MAP_CHECKS(SWITCH_OFF)
#undef SWITCH_OFF
		if (!known)
			return false;
		environment += length;
		environment += strspn(environment, " ");
	}
	return true;
}

static int read_machine(const char *directory, const char *name, struct topology *topology)
{
	char path[4096];
	int ret;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	ret = topology_read(path, topology);
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(-ret));
	return ret;
}

static int split(char *line, struct pair *pair)
{
	char *rest = line;

	line[strcspn(line, "\r\n")] = '\0';
	pair->line = line;
	for (size_t i = 0; i < PAIR_COLUMNS; i++) {
		char *column = strsep(&rest, "\t");

		if (!column && i != PAIR_CASE)
			return -EINVAL;
		pair->columns[i] = column ? column : "";
	}
	return 0;
}

static int take_line(const char *directory, char *line, void (*take)(struct pair *, void *),
		     void *argument)
{
	struct pair pair = { .options = pair_options() };
	int ret = split(line, &pair);

	if (ret < 0 || !parse_switches(&pair.options, pair.columns[PAIR_ENVIRONMENT])) {
		fprintf(stderr, "pairs.tsv: cannot parse \"%s\"\n", line);
		return -EINVAL;
	}
	ret = read_machine(directory, pair.columns[PAIR_SOURCE], &pair.source);
	if (!ret)
		ret = read_machine(directory, pair.columns[PAIR_DESTINATION], &pair.destination);
	if (!ret)
		take(&pair, argument);
	topology_done(&pair.source);
	topology_done(&pair.destination);
	return ret;
}

int pairs_for_each(const char *directory, void (*take)(struct pair *pair, void *argument),
		   void *argument)
{
	char path[4096], line[16384];
	int count = -1, ret = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/pairs.tsv", directory);
	file = fopen(path, "re");
	if (!file) {
		ret = -errno;
		fprintf(stderr, "%s: %s\n", path, strerror(-ret));
		return ret;
	}
	/* The first line is a heading. */
	while (!ret && fgets(line, sizeof(line), file)) {
		if (count >= 0)
			ret = take_line(directory, line, take, argument);
		count++;
	}
	(void)fclose(file);
	return ret < 0 ? ret : count < 0 ? 0 : count;
}

static void list_map(const struct pair *pair, const struct gpu_map *map, struct answer *answer)
{
	size_t used = 0;

	for (size_t i = 0; i < pair->source.num_nodes && used < sizeof(answer->mapping); i++) {
		if (map->local[i])
			used += (size_t)snprintf(answer->mapping + used,
						 sizeof(answer->mapping) - used, "%s%x:%x",
						 used ? " " : "", pair->source.nodes[i].gpu_id,
						 map->local[i]->gpu_id);
	}
}

const char *pair_outcome(enum map_outcome outcome)
{
	static const char *const outcomes[] = { "mapped", "mapped-warning", "refused",
						"malformed" };

	return outcomes[outcome];
}

static const char *device_map_reason(const struct gpu_map *map)
{
	switch (map->device_map_error) {
	case DEVICE_MAP_OK:
		break;
	case DEVICE_MAP_SYNTAX:
		return "syntax";
	case DEVICE_MAP_UNKNOWN:
	case DEVICE_MAP_NOT_PRESENT:
		return "unknown";
	case DEVICE_MAP_AMBIGUOUS:
		return "ambiguous";
	case DEVICE_MAP_TWICE:
		return "twice";
	case DEVICE_MAP_PROPERTY:
		return map->property;
	case DEVICE_MAP_LINKS:
		return "links";
	case DEVICE_MAP_NUMA:
		return "numa";
	}
	return "ok";
}

void pair_reason(const struct gpu_map *map, char *text, size_t size)
{
	static const char *const reasons[] = {
		[REASON_NONE] = "",           [REASON_TOO_MANY] = "too-many",
		[REASON_COUNT] = "count",     [REASON_COUNT_FITTING] = "count",
		[REASON_SHARING] = "sharing", [REASON_LINKS] = "links",
		[REASON_NUMA] = "numa",       [REASON_UNDECIDED] = "undecided",
	};

	switch (map->reason) {
	case REASON_MALFORMED:
		(void)snprintf(text, size, "malformed %x", map->gpu_id);
		break;
	case REASON_DEVICE_MAP:
		(void)snprintf(text, size, "device-map:%s", device_map_reason(map));
		break;
	case REASON_NO_CANDIDATE:
		(void)snprintf(text, size, "no-candidate:%s %x", map->property, map->gpu_id);
		break;
	default:
		(void)snprintf(text, size, "%s", reasons[map->reason]);
	}
}

int pair_explain(const struct topology *source, const struct topology *destination,
		 const struct map_options *options)
{
	struct gpu_map map;
	int ret = map_decide(source, destination, options, &map);

	if (ret < 0)
		return ret;
	ret = explain_map(&map);
	map_done(&map);
	return ret;
}

void pair_answer(const struct pair *pair, struct answer *ret_answer)
{
	struct answer answer = { .outcome = "error" };
	struct gpu_map map;

	if (map_decide(&pair->source, &pair->destination, &pair->options, &map) == 0) {
		answer.outcome = pair_outcome(map.outcome);
		answer.attempts = map.attempts;
		list_map(pair, &map, &answer);
		pair_reason(&map, answer.reason, sizeof(answer.reason));
		map_done(&map);
	}
	answer.agrees = !strcmp(answer.outcome, pair->columns[PAIR_OUTCOME]) &&
			!strcmp(answer.mapping, pair->columns[PAIR_MAPPING]) &&
			!strcmp(answer.reason, pair->columns[PAIR_REASON]);
	*ret_answer = answer;
}
