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
#include "map/gpu_rules.h"
#include "map/map_input.h"
#include "map/matching.h"
#include "map/search.h"

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
static int end_without_map(struct gpu_map *map, enum map_reason reason)
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
	return end_without_map(map, REASON_MALFORMED);
}

static int refuse_gpu(struct gpu_map *map, const struct map_input *in, size_t saved)
{
	struct difference first;

	(void)gpu_rules_compare(in, saved, gpu_rules_nearest(in, saved), &first);
	map->property = first.property;
	map->gpu_id = in->saved.gpus[saved]->gpu_id;
	return end_without_map(map, REASON_NO_CANDIDATE);
}

/* Checks the pairs before the search, so that the log can name the pair and the rule. */
static int apply_device_map(struct map_input *in, struct gpu_map *map)
{
	int ret;

	if (!in->options->device_map)
		return 0;
	ret = device_map_read(in, map);
	if (ret < 0)
		return ret;
	if (map->device_map_error)
		return end_without_map(map, REASON_DEVICE_MAP);
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		if (in->pinned[i])
			in->candidates[i] = in->pinned[i];
	}
	return 0;
}

/* A saved GPU that another process has, too, goes where it went there, and the GPUs of others are
 * no candidates. But the user may name any GPU. */
static void follow_claims(struct map_input *in)
{
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		uint64_t candidates = in->pinned[i] ? 0 : in->candidates[i];

		set_for_each (j, candidates) {
			uint32_t claim = __atomic_load_n(
				&in->tree->claims[in->local.gpus[j]->gpu_id % MAP_CLAIMS],
				__ATOMIC_ACQUIRE);

			if (claim == in->saved.gpus[i]->actual_gpu_id)
				in->candidates[i] &= set_of(j);
			else if (claim)
				in->candidates[i] &= ~set_of(j);
		}
	}
}

/* Leaves each GPU the one candidate that the mapping of the tree has for it. */
static int follow_tree(struct map_input *in)
{
	const struct map_input *all = in->all->input;

	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		size_t of_tree = links_find_node(&all->saved, in->saved.gpus[i]->node_id);

		if (of_tree == GPU_SET_MAX)
			return -EINVAL;
		in->pinned[i] = all->pinned[of_tree];
		in->candidates[i] = set_of(all->local_of[of_tree]);
	}
	return 0;
}

static void compare_gpu(struct map_input *in, size_t saved, size_t local)
{
	const uint64_t gpu = set_of(local);

	if (gpu_rules_fit(in, saved, local))
		in->candidates[saved] |= gpu;
	if (gpu_rules_is_same_device(in, saved, local))
		in->same_device[saved] |= gpu;
	if (in->saved.gpus[saved]->gpu_id == in->local.gpus[local]->gpu_id)
		in->same_id[saved] |= gpu;
	if (gpu_rules_is_same_partition(in, saved, local))
		in->same_partition[saved] |= gpu;
}

/* Everything that comparing single GPUs can answer. */
static int compare_gpus(struct map_input *in, struct gpu_map *map)
{
	int ret;

	if (in->saved.num_gpus > in->local.num_gpus)
		return end_without_map(map, REASON_COUNT);
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		for (size_t j = 0; j < in->local.num_gpus; j++)
			compare_gpu(in, i, j);
	}
	ret = in->all ? follow_tree(in) : apply_device_map(in, map);
	if (ret < 0)
		return ret;
	if (in->avoid_claims && !in->all)
		follow_claims(in);
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		if (!in->candidates[i])
			return refuse_gpu(map, in, i);
	}
	if (!matching_exists(in->candidates, in->saved.num_gpus))
		return end_without_map(map, REASON_COUNT_FITTING);
	return 0;
}

static bool has_siblings(const struct link_graph *graph)
{
	uint64_t all = 0;

	for (size_t i = 0; i < graph->num_gpus; i++)
		all |= graph->siblings[i];
	return all;
}

/* Whether present GPUs have several numbers, or another one than a saved GPU. */
static bool has_partitions(const struct map_input *in)
{
	bool found = false;

	for (size_t i = 0; i < in->saved.num_gpus; i++)
		found |= in->same_partition[i] != set_of_first(in->local.num_gpus);
	return found;
}

/* Of equally good mappings, takes one of the problem @narrower, if there is any. */
static int prefer(const struct search_problem *narrower, struct search_problem *problem,
		  struct search_result *result)
{
	struct search_result found = { 0 };
	int ret = search_best(narrower, &found);

	found.attempts += result->attempts;
	if (!ret && found.worth == result->worth) {
		*result = found;
		*problem = *narrower;
	}
	result->attempts = found.attempts;
	return ret == -ENOMEM ? ret : 0;
}

static int prefer_rule(unsigned int rule, struct search_problem *problem,
		       struct search_result *result)
{
	struct search_problem narrower = *problem;

	narrower.rules |= rule;
	return prefer(&narrower, problem, result);
}

/* A saved GPU may keep its card or its gpu_id, and gets a GPU in use if no other fits it. */
static int prefer_unused(const struct map_input *in, const struct search_problem *problem,
			 struct search_result *result)
{
	uint64_t unused = 0, candidates[GPU_SET_MAX];
	struct search_problem narrower = *problem, last = *problem;

	for (size_t i = 0; i < in->local.num_gpus; i++)
		unused |= in->local.gpus[i]->in_use ? 0 : set_of(i);
	if (unused == set_of_first(in->local.num_gpus))
		return 0;
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		candidates[i] = in->candidates[i] & (unused | in->same_device[i] | in->same_id[i]);
		if (!candidates[i])
			candidates[i] = in->candidates[i];
	}
	narrower.candidates = candidates;
	return prefer(&narrower, &last, result);
}

static int find(const struct map_input *in, unsigned int rules, struct search_result *result)
{
	struct search_problem problem = search_problem_of(in, rules);
	int ret = search_best(&problem, result);

	if (!ret && has_siblings(&in->saved) && has_siblings(&in->local))
		ret = prefer_rule(SEARCH_SIBLINGS, &problem, result);
	if (!ret && has_partitions(in))
		ret = prefer_rule(SEARCH_PARTITIONS, &problem, result);
	return ret < 0 ? ret : prefer_unused(in, &problem, result);
}

/* Searches again with fewer rules, to learn which of them has no solution. @links: SEARCH_LINKS or
 * 0. */
static int refuse_together(const struct map_input *in, unsigned int links,
			   struct search_result *result, struct gpu_map *map)
{
	struct search_problem problem = search_problem_of(in, 0);
	int ret = search_any(&problem, result);

	if (ret == -ESRCH)
		return end_without_map(map, REASON_SHARING);
	problem.rules = links;
	if (!ret)
		ret = search_any(&problem, result);
	if (ret == -ESRCH)
		return end_without_map(map, REASON_LINKS);
	return ret < 0 ? ret : end_without_map(map, REASON_NUMA);
}

static int find_by_cpu(const struct map_input *in, unsigned int links, struct search_result *result,
		       struct gpu_map *map)
{
	unsigned int numa = in->options->check_numa ? SEARCH_TOGETHER : 0;
	int ret = find(in, links | numa | (numa ? SEARCH_APART : 0), result);

	if (ret == -ESRCH && numa) {
		map->outcome = MAP_MAPPED_WARNING;
		ret = find(in, links | numa, result);
	}
	return ret == -ESRCH ? refuse_together(in, links, result, map) : ret;
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

/* Leaves saved GPUs with queues of copy engines only partitions with their number. Returns whether
 * that excludes a candidate. */
static bool keep_partitions(struct map_input *in)
{
	const struct map_tree *tree = in->tree;
	bool excludes = false;

	for (size_t i = 0; tree && i < tree->num_copy_nodes; i++) {
		size_t gpu = links_find_node(&in->saved, tree->copy_nodes[i]);

		if (gpu == GPU_SET_MAX)
			continue;
		excludes |= in->candidates[gpu] & ~in->same_partition[gpu];
		in->candidates[gpu] &= in->same_partition[gpu];
	}
	return excludes;
}

/* Without a mapping that keeps the partitions, takes another, so that queue_check_task() names the
 * queue that needs its partition. */
static int find_for_queues(struct map_input *in, struct search_result *result, struct gpu_map *map)
{
	uint64_t candidates[GPU_SET_MAX];
	int ret;

	memcpy(candidates, in->candidates, sizeof(candidates));
	if (!keep_partitions(in))
		return find_together(in, result, map);
	ret = find_together(in, result, map);
	memcpy(in->candidates, candidates, sizeof(candidates));
	if (ret != -ENODEV && ret != -E2BIG)
		return ret;
	map->reason = REASON_NONE;
	map->outcome = MAP_MAPPED;
	return find_together(in, result, map);
}

static void note_result(struct map_input *in, const struct search_result *result,
			struct gpu_map *map)
{
	uint64_t used = 0;

	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		size_t index = (size_t)(in->saved.gpus[i] - in->saved.topology->nodes);

		in->local_of[i] = result->local_of[i];
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
	ret = find_for_queues(in, &result, map);
	map->attempts = result.attempts;
	if (ret == -E2BIG)
		return end_without_map(map, REASON_UNDECIDED);
	if (!ret)
		note_result(in, &result, map);
	return ret;
}

/* KFD makes another kind of BO for another PCI device, so an importer and the owner keep their
 * relation. */
static void note_sharing(struct map_input *in, size_t owner, size_t importer)
{
	uint64_t *sharing;

	if (owner == importer)
		return;
	sharing = set_has(in->saved.siblings[owner], importer) ? in->sharing_siblings
							       : in->sharing_strangers;
	sharing[owner] |= set_of(importer);
	sharing[importer] |= set_of(owner);
}

/* A process alone keeps the relations among its own GPUs. */
static void note_all_sharing(struct map_input *in)
{
	const struct map_sharing *owner = NULL;

	for (size_t i = 0; in->tree && i < in->tree->num_sharing; i++) {
		const struct map_sharing *sharing = &in->tree->sharing[i];
		size_t first, gpu = links_find_node(&in->saved, sharing->node_id);

		if (sharing->is_owner)
			owner = sharing;
		if (!owner || owner->object != sharing->object)
			continue;
		first = links_find_node(&in->saved, owner->node_id);
		if (first != GPU_SET_MAX && gpu != GPU_SET_MAX)
			note_sharing(in, first, gpu);
	}
}

static int map_init(const struct topology *saved, const struct topology *local,
		    const struct map_input *question, struct gpu_map *map)
{
	map->num_nodes = saved->num_nodes;
	map->input = malloc(sizeof(*map->input));
	map->local = calloc(saved->num_nodes + 1, sizeof(const void *));
	map->extra = calloc(local->num_nodes + 1, sizeof(const void *));
	if (!map->input || !map->local || !map->extra)
		return -ENOMEM;
	*map->input = *question;
	if (links_init(saved, &map->input->saved) < 0 || links_init(local, &map->input->local) < 0)
		return end_without_map(map, REASON_TOO_MANY);
	note_all_sharing(map->input);
	return 0;
}

/* @question: the options, the tree, and how to use it. */
static int answer(const struct topology *saved, const struct topology *local,
		  const struct map_input *question, struct gpu_map *ret_map)
{
	_cleanup_(map_done) struct gpu_map map = { 0 };
	int ret;

	ret = map_init(saved, local, question, &map);
	if (!ret)
		ret = decide(map.input, &map);
	if (ret < 0 && !map.reason)
		return log_error(ret, "map: cannot compare the GPUs");
	/* Only follow_tree() reads it. */
	map.input->all = NULL;
	*ret_map = take_struct(map);
	return 0;
}

int map_decide(const struct topology *saved, const struct topology *local,
	       const struct map_options *options, struct gpu_map *ret_map)
{
	const struct map_input question = { .options = options };

	return answer(saved, local, &question, ret_map);
}

/* Without present GPUs that others have, if that is possible. */
static int decide_alone(const struct topology *saved, const struct topology *local,
			struct map_input *question, struct gpu_map *ret_map)
{
	int ret;

	question->pairs_for_others = true;
	ret = answer(saved, local, question, ret_map);
	if (ret < 0)
		return ret;
	ret_map->scope = SCOPE_ALONE;
	if (!ret_map->reason || !question->avoid_claims)
		return 0;
	map_done(ret_map);
	question->avoid_claims = false;
	ret = answer(saved, local, question, ret_map);
	if (!ret)
		ret_map->scope = SCOPE_SHARED;
	return ret;
}

int map_decide_in_tree(const struct map_tree *tree, const struct topology *saved,
		       const struct topology *local, const struct map_options *options,
		       struct gpu_map *ret_map)
{
	struct map_input question = {
		.options = options,
		.tree = tree,
		.pairs_for_others = tree->partial,
		.avoid_claims = tree->claims,
	};
	_cleanup_(map_done) struct gpu_map all = { 0 };
	int ret = answer(&tree->saved, local, &question, &all);

	if (ret < 0)
		return ret;
	/* The user's mistake concerns all processes. But a task need not see the GPUs of others. */
	if (all.reason == REASON_DEVICE_MAP && all.device_map_error != DEVICE_MAP_NOT_PRESENT) {
		*ret_map = take_struct(all);
		return 0;
	}
	if (all.reason || tree->disagrees)
		return decide_alone(saved, local, &question, ret_map);
	question.all = &all;
	return answer(saved, local, &question, ret_map);
}

void map_done(struct gpu_map *map)
{
	free(map->local);
	free(map->extra);
	free(map->input);
	*map = (struct gpu_map){ 0 };
}
