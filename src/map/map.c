// SPDX-License-Identifier: GPL-2.0-only
/* Asks the questions of the mapper in order and keeps the first answer. For the answer in words
 * call explain_map(). */
#include "map/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "map/device_map.h"
#include "map/map_input.h"
#include "map/matching.h"

void map_note_unreachable(struct topology *local,
			  int (*open_node)(uint32_t minor, int lowest_fd, int *ret_fd))
{
	for (size_t i = 0; i < local->num_nodes; i++) {
		struct topology_node *node = &local->nodes[i];
		_cleanup_close_ int fd = -1;
		int ret;

		if (!node->gpu_id || node->unreachable)
			continue;
		ret = open_node(node->drm_render_minor, 0, &fd);
		node->unreachable = ret < 0;
		if (ret < 0)
			log_warn("map: GPU 0x%04x is not used: cannot open renderD%u: %s",
				 node->gpu_id, node->drm_render_minor, strerror(-ret));
	}
}

/* map_decide() takes -ENODEV with a reason for an answer. */
static int refuse(struct gpu_map *map, enum map_reason reason)
{
	map->outcome = reason == REASON_MALFORMED ? MAP_MALFORMED : MAP_REFUSED;
	map->reason = reason;
	return -ENODEV;
}

static int refuse_repeated(struct gpu_map *map, const struct map_input *in)
{
	const struct topology_node *repeated = links_find_repeated(&in->saved);

	if (!repeated)
		repeated = links_find_repeated(&in->local);
	if (!repeated)
		return 0;
	map->gpu_id = repeated->gpu_id;
	return refuse(map, REASON_MALFORMED);
}

static int refuse_gpu(struct gpu_map *map, const struct map_input *in, size_t saved)
{
	struct difference first = { 0 };

	(void)gpu_rules_nearest(in->saved.gpus[saved], &in->local, in->options, &first);
	map->property = first.property;
	map->gpu_id = in->saved.gpus[saved]->gpu_id;
	return refuse(map, REASON_NO_CANDIDATE);
}

/* Checks the pairs before the search, so that the log can name the pair and the rule. */
static int apply_device_map(struct map_input *in, struct gpu_map *map)
{
	int ret;

	for (size_t i = 0; i < in->saved.num_gpus; i++)
		in->pinned[i] = NOT_PINNED;
	if (!in->options->device_map)
		return 0;
	ret = device_map_read(in, map);
	if (ret < 0)
		return ret;
	if (!map->device_map_error)
		device_map_check(in, map);
	if (map->device_map_error)
		return refuse(map, REASON_DEVICE_MAP);
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		if (in->pinned[i] != NOT_PINNED)
			in->candidates[i] = set_of((size_t)in->pinned[i]);
	}
	return 0;
}

/* Everything that comparing single GPUs can answer. */
static int compare_gpus(struct map_input *in, struct gpu_map *map)
{
	int ret;

	if (in->saved.num_gpus > in->local.num_gpus)
		return refuse(map, REASON_COUNT);
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		in->candidates[i] = gpu_rules_candidates(&in->saved, i, &in->local, in->options);
		in->same_device[i] = gpu_rules_same_device(&in->saved, i, &in->local);
		in->same_id[i] = gpu_rules_same_id(in->saved.gpus[i], &in->local);
	}
	ret = apply_device_map(in, map);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		if (!in->candidates[i])
			return refuse_gpu(map, in, i);
	}
	if (!matching_exists(in->candidates, in->saved.num_gpus))
		return refuse(map, REASON_COUNT_FITTING);
	return 0;
}

static int find(const struct map_input *in, unsigned int rules, struct search_result *result)
{
	struct search_problem problem = map_input_problem(in, rules);

	return search_best(&problem, result);
}

/* Searches again without CPU nodes, to learn which of the two rules has no solution. */
static int refuse_together(const struct map_input *in, unsigned int links,
			   struct search_result *result, struct gpu_map *map)
{
	struct search_problem problem = map_input_problem(in, links);
	int ret = search_any(&problem, result);

	if (ret == -ESRCH)
		return refuse(map, REASON_LINKS);
	return ret < 0 ? ret : refuse(map, REASON_NUMA);
}

/* @links: SEARCH_LINKS or 0. */
static int find_by_cpu(const struct map_input *in, unsigned int links, struct search_result *result,
		       struct gpu_map *map)
{
	int ret;

	if (!in->options->check_numa) {
		ret = find(in, links, result);
		return ret == -ESRCH ? refuse(map, REASON_LINKS) : ret;
	}
	ret = find(in, links | SEARCH_TOGETHER | SEARCH_APART, result);
	if (ret != -ESRCH)
		return ret;
	ret = find(in, links | SEARCH_TOGETHER, result);
	if (ret == -ESRCH)
		return refuse_together(in, links, result, map);
	map->outcome = MAP_MAPPED_WARNING;
	return ret;
}

static int find_together(const struct map_input *in, struct search_result *result,
			 struct gpu_map *map)
{
	int ret = find_by_cpu(in, SEARCH_LINKS, result, map);

	if (in->options->check_xgmi || (ret != -ENODEV && ret != -E2BIG))
		return ret;
	map->reason = REASON_NONE;
	map->outcome = MAP_MAPPED_WARNING;
	return find_by_cpu(in, 0, result, map);
}

static void note_result(const struct map_input *in, const struct search_result *result,
			struct gpu_map *map)
{
	uint64_t used = 0;

	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		size_t index = (size_t)(in->saved.gpus[i] - in->saved.topology->nodes);

		map->local[index] = in->local.gpus[result->local_of[i]];
		used |= set_of(result->local_of[i]);
	}
	for (size_t i = 0; i < in->local.num_gpus; i++) {
		if (!set_has(used, i))
			map->extra[map->num_extra++] = in->local.gpus[i];
	}
}

static int decide(struct map_input *in, struct gpu_map *map)
{
	struct search_result result = { 0 };
	int ret;

	ret = refuse_repeated(map, in);
	if (!ret)
		ret = compare_gpus(in, map);
	if (ret < 0)
		return ret;
	ret = find_together(in, &result, map);
	map->attempts = result.attempts;
	if (ret == -E2BIG)
		return refuse(map, REASON_UNDECIDED);
	if (!ret)
		note_result(in, &result, map);
	return ret;
}

static int map_init(const struct topology *saved, const struct topology *local,
		    const struct map_options *options, struct gpu_map *map)
{
	map->num_nodes = saved->num_nodes;
	map->input = calloc(1, sizeof(*map->input));
	map->local = calloc(saved->num_nodes + 1, sizeof(const void *));
	map->extra = calloc(local->num_nodes + 1, sizeof(const void *));
	if (!map->input || !map->local || !map->extra)
		return -ENOMEM;
	map->input->options = options;
	if (links_init(saved, &map->input->saved) < 0 || links_init(local, &map->input->local) < 0)
		return refuse(map, REASON_TOO_MANY);
	return 0;
}

int map_decide(const struct topology *saved, const struct topology *local,
	       const struct map_options *options, struct gpu_map *ret_map)
{
	_cleanup_(map_done) struct gpu_map map = { 0 };
	int ret;

	ret = map_init(saved, local, options, &map);
	if (!ret)
		ret = decide(map.input, &map);
	if (ret < 0 && !map.reason)
		return log_error(ret, "map: cannot compare the GPUs");
	*ret_map = map;
	map = (struct gpu_map){ 0 };
	return 0;
}

void map_done(struct gpu_map *map)
{
	free(map->local);
	free(map->extra);
	free(map->input);
	*map = (struct gpu_map){ 0 };
}
