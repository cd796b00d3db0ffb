// SPDX-License-Identifier: GPL-2.0-only
/* Decides which GPU here stands for which GPU there, or why none does: the order of the questions.
 * Each question is answered by a unit of its own, and the answer is put into words by another. */
#include "map/map.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "map/device_map.h"
#include "map/explain.h"
#include "map/map_case.h"
#include "map/matching.h"

struct search_problem map_case_problem(const struct map_case *c, enum search_rules rules)
{
	return (struct search_problem){
		.saved = &c->saved,
		.local = &c->local,
		.wanted = set_of_first(c->saved.num_gpus),
		.candidates = c->candidates,
		.same = c->same,
		.rules = rules,
	};
}

static int __attribute__((format(printf, 3, 4)))
refuse(struct gpu_map *map, enum map_reason reason, const char *words, ...)
{
	va_list arguments;

	map->outcome = reason == REASON_MALFORMED ? MAP_MALFORMED : MAP_REFUSED;
	map->reason = reason;
	va_start(arguments, words);
	(void)vsnprintf(map->words, sizeof(map->words), words, arguments);
	va_end(arguments);
	return 0;
}

static int refuse_repeated(struct gpu_map *map, const struct map_case *c)
{
	const struct topology_node *repeated = links_find_repeated(&c->saved);

	if (!repeated)
		repeated = links_find_repeated(&c->local);
	return repeated ? refuse(map, REASON_MALFORMED, "malformed %x", repeated->gpu_id) : 0;
}

/* The property is what the nearest GPU lacks. */
static int refuse_gpu(struct gpu_map *map, const struct map_case *c, size_t saved)
{
	struct difference first = { 0 };

	(void)gpu_rules_nearest(c->saved.gpus[saved], &c->local, c->options, &first);
	return refuse(map, REASON_NO_CANDIDATE, "no-candidate:%s %x", first.property,
		      c->saved.gpus[saved]->gpu_id);
}

/* What the user has told is checked as far as it goes by itself, so that the rule can be named. */
static int apply_device_map(struct map_case *c, struct gpu_map *map)
{
	const char *rule;

	for (size_t i = 0; i < c->saved.num_gpus; i++)
		c->told[i] = NOT_TOLD;
	if (!c->options->device_map)
		return 0;
	rule = device_map_read(c, map);
	if (!rule)
		rule = device_map_check(c, map);
	if (rule)
		return refuse(map, REASON_DEVICE_MAP, "device-map:%s", rule);
	for (size_t i = 0; i < c->saved.num_gpus; i++) {
		if (c->told[i] != NOT_TOLD)
			c->candidates[i] = set_of((size_t)c->told[i]);
	}
	return 0;
}

/* All that one GPU against one GPU can tell. */
static int compare_gpus(struct map_case *c, struct gpu_map *map)
{
	if (c->saved.num_gpus > c->local.num_gpus)
		return refuse(map, REASON_COUNT, "count");
	for (size_t i = 0; i < c->saved.num_gpus; i++) {
		c->candidates[i] = gpu_rules_candidates(&c->saved, i, &c->local, c->options);
		c->same[i] = gpu_rules_same_device(&c->saved, i, &c->local);
	}
	(void)apply_device_map(c, map);
	if (map->reason)
		return 0;
	for (size_t i = 0; i < c->saved.num_gpus; i++) {
		if (set_is_empty(&c->candidates[i]))
			return refuse_gpu(map, c, i);
	}
	if (!matching_exists(c->candidates, c->saved.num_gpus))
		return refuse(map, REASON_COUNT_FITTING, "count");
	return 0;
}

static int find(const struct map_case *c, enum search_rules rules, struct search_result *result)
{
	struct search_problem problem = map_case_problem(c, rules);

	return search_best(&problem, result);
}

/* Without a map only the links are asked, to tell what the reason is. */
static int refuse_together(const struct map_case *c, struct search_result *result,
			   struct gpu_map *map)
{
	struct search_problem problem = map_case_problem(c, SEARCH_LINKS);
	int ret = search_any(&problem, result);

	if (ret == -ESRCH)
		return refuse(map, REASON_LINKS, "links");
	return ret < 0 ? ret : refuse(map, REASON_NUMA, "numa");
}

/* All GPUs together: the better tier first. */
static int find_together(const struct map_case *c, struct search_result *result,
			 struct gpu_map *map)
{
	int ret;

	if (!c->options->check_numa) {
		ret = find(c, SEARCH_LINKS, result);
		return ret == -ESRCH ? refuse(map, REASON_LINKS, "links") : ret;
	}
	ret = find(c, SEARCH_APART, result);
	if (ret != -ESRCH)
		return ret;
	ret = find(c, SEARCH_TOGETHER, result);
	if (ret == -ESRCH)
		return refuse_together(c, result, map);
	map->outcome = MAP_MAPPED_WARNING;
	return ret;
}

static void note_result(const struct map_case *c, const struct search_result *result,
			struct gpu_map *map)
{
	struct gpu_set used = { 0 };

	for (size_t i = 0; i < c->saved.num_gpus; i++) {
		size_t index = (size_t)(c->saved.gpus[i] - c->saved.topology->nodes);

		map->local[index] = c->local.gpus[result->local_of[i]];
		set_add(&used, result->local_of[i]);
	}
	for (size_t i = 0; i < c->local.num_gpus; i++) {
		if (!set_has(&used, i))
			map->surplus[map->num_surplus++] = c->local.gpus[i];
	}
}

static int decide(struct map_case *c, struct gpu_map *map)
{
	struct search_result result = { 0 };
	int ret;

	(void)refuse_repeated(map, c);
	if (!map->reason)
		(void)compare_gpus(c, map);
	if (map->reason)
		return 0;
	ret = find_together(c, &result, map);
	map->attempts = result.attempts;
	if (ret == -E2BIG)
		return refuse(map, REASON_UNDECIDED, "undecided");
	if (!ret && !map->reason)
		note_result(c, &result, map);
	return ret;
}

static int make_case(const struct topology *saved, const struct topology *local,
		     const struct options *options, struct gpu_map *map, struct map_case **ret_case)
{
	_cleanup_free_ struct map_case *c = calloc(1, sizeof(*c));

	map->num_nodes = saved->num_nodes;
	map->local = calloc(saved->num_nodes + 1, sizeof(const void *));
	map->surplus = calloc(local->num_nodes + 1, sizeof(const void *));
	if (!c || !map->local || !map->surplus)
		return -ENOMEM;
	c->options = options;
	if (links_init(saved, &c->saved) < 0 || links_init(local, &c->local) < 0)
		(void)refuse(map, REASON_TOO_MANY, "too-many");
	*ret_case = take_ptr(&c);
	return 0;
}

static int run(const struct topology *saved, const struct topology *local,
	       const struct options *options, bool aloud, struct gpu_map *ret_map)
{
	_cleanup_(map_done) struct gpu_map map = { 0 };
	_cleanup_free_ struct map_case *c = NULL;
	int ret;

	ret = make_case(saved, local, options, &map, &c);
	if (!ret && !map.reason)
		ret = decide(c, &map);
	if (!ret && aloud)
		ret = map_explain(c, &map);
	if (ret < 0)
		return ret;
	*ret_map = map;
	map = (struct gpu_map){ 0 };
	return 0;
}

int map_decide(const struct topology *saved, const struct topology *local,
	       const struct options *options, struct gpu_map *ret_map)
{
	return run(saved, local, options, false, ret_map);
}

int map_gpus(const struct topology *saved, const struct topology *local,
	     const struct options *options, struct gpu_map *ret_map)
{
	int ret = run(saved, local, options, true, ret_map);

	return ret == -ENOMEM ? log_error(ret, "map: no memory") : ret;
}

void map_done(struct gpu_map *map)
{
	free(map->local);
	free(map->surplus);
	*map = (struct gpu_map){ 0 };
}
