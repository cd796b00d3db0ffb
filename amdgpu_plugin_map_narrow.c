// SPDX-License-Identifier: GPL-2.0-only
/* Leaves candidates out that the rules between GPUs rule out, without trying anything. What remains may
 * still be impossible together: that is the search's business. */
#include "amdgpu_plugin_map_narrow.h"

#include "amdgpu_plugin_map_match.h"

struct gpu_set narrow_by_cpu_link(const struct search_problem *p, size_t saved)
{
	struct gpu_set fit = { 0 };

	for (size_t i = 0; i < p->local->num_gpus; i++) {
		if (p->saved->region_of[saved] == NO_REGION ||
		    (p->local->region_of[i] != NO_REGION &&
		     (!p->saved->xgmi_to_cpu[saved] || p->local->xgmi_to_cpu[i])))
			set_add(&fit, i);
	}
	return fit;
}

/* false: nothing is left. */
static bool keep_only(struct gpu_set *set, const struct gpu_set *allowed, bool *changed)
{
	struct gpu_set both = set_and(set, allowed);

	if (!set_equal(set, &both)) {
		*set = both;
		*changed = true;
	}
	return !set_is_empty(set);
}

/* A local GPU that must be some saved one's is no other's. */
static bool narrow_by_taken(const struct search_problem *p, struct gpu_set *left, bool *changed)
{
	struct gpu_set taken = { 0 }, all = set_of_first(p->local->num_gpus), open;

	set_for_each(i, &p->wanted) {
		size_t only = set_next(&left[i], 0);

		if (only == GPU_SET_MAX)
			return false;
		if (set_next(&left[i], only + 1) < GPU_SET_MAX)
			continue;
		if (set_has(&taken, only))
			return false;
		set_add(&taken, only);
	}
	open = set_without(&all, &taken);
	set_for_each(i, &p->wanted) {
		if (set_count(&left[i]) > 1 && !keep_only(&left[i], &open, changed))
			return false;
	}
	return true;
}

/* Peers of saved GPU @i can only be where a link from one of its candidates leads to; and a candidate
 * must have as many links into where the peers can be as there are peers. */
static bool narrow_by_links(const struct search_problem *p, struct gpu_set *left, size_t i, bool *changed)
{
	struct gpu_set peers = set_and(&p->saved->xgmi[i], &p->wanted);
	struct gpu_set reach = { 0 }, pool = { 0 }, fit = { 0 };
	size_t num_peers = set_count(&peers);

	if (!num_peers)
		return true;
	set_for_each(j, &left[i])
		set_add_all(&reach, &p->local->xgmi[j]);
	set_for_each(peer, &peers) {
		if (!keep_only(&left[peer], &reach, changed))
			return false;
		set_add_all(&pool, &left[peer]);
	}
	set_for_each(j, &left[i]) {
		struct gpu_set linked = set_and(&p->local->xgmi[j], &pool);

		if (set_count(&linked) >= num_peers)
			set_add(&fit, j);
	}
	return keep_only(&left[i], &fit, changed);
}

/* Whether all of @group find room among the GPUs of @region. */
static bool region_has_room(const struct search_problem *p, const struct gpu_set *left,
			    const struct gpu_set *group, size_t region)
{
	struct gpu_set sets[GPU_SET_MAX];
	size_t count = 0;

	set_for_each(i, group) {
		sets[count] = set_and(&left[i], &p->local->members[region]);
		if (set_is_empty(&sets[count++]))
			return false;
	}
	return sets_have_representatives(sets, count);
}

struct gpu_set narrow_group_of(const struct search_problem *p, size_t region)
{
	return set_and(&p->saved->members[region], &p->wanted);
}

struct gpu_set narrow_regions_for(const struct search_problem *p, const struct gpu_set *left,
				  const struct gpu_set *group)
{
	struct gpu_set regions = { 0 };

	for (size_t i = 0; i < p->local->num_regions; i++) {
		if (region_has_room(p, left, group, i))
			set_add(&regions, i);
	}
	return regions;
}

/* A group can only be in regions that have room for it. */
static bool narrow_group(const struct search_problem *p, struct gpu_set *left, const struct gpu_set *group,
			 const struct gpu_set *regions, bool *changed)
{
	struct gpu_set room = { 0 };

	set_for_each(region, regions)
		set_add_all(&room, &p->local->members[region]);
	set_for_each(i, group) {
		if (!keep_only(&left[i], &room, changed))
			return false;
	}
	return true;
}

/* The region of one group alone is no other group's. */
static bool narrow_others(const struct search_problem *p, struct gpu_set *left, size_t group, size_t region,
			  bool *changed)
{
	struct gpu_set all = set_of_first(p->local->num_gpus);
	struct gpu_set rest = set_without(&all, &p->local->members[region]);

	set_for_each(i, &p->wanted) {
		int other = p->saved->region_of[i];

		if (other != NO_REGION && (size_t)other != group && !keep_only(&left[i], &rest, changed))
			return false;
	}
	return true;
}

static bool narrow_by_regions(const struct search_problem *p, struct gpu_set *left, bool *changed)
{
	struct gpu_set regions[GPU_SET_MAX];
	size_t count = 0;

	for (size_t i = 0; i < p->saved->num_regions; i++) {
		struct gpu_set group = narrow_group_of(p, i);
		size_t first;

		if (set_is_empty(&group))
			continue;
		regions[count] = narrow_regions_for(p, left, &group);
		if (!narrow_group(p, left, &group, &regions[count], changed))
			return false;
		first = set_next(&regions[count], 0);
		if (p->rules == SEARCH_APART && set_next(&regions[count], first + 1) == GPU_SET_MAX &&
		    !narrow_others(p, left, i, first, changed))
			return false;
		count++;
	}
	return p->rules != SEARCH_APART || sets_have_representatives(regions, count);
}

bool narrow_all(const struct search_problem *p, struct gpu_set *left)
{
	bool changed;

	do {
		changed = false;
		if (!narrow_by_taken(p, left, &changed))
			return false;
		set_for_each(i, &p->wanted) {
			if (p->rules >= SEARCH_LINKS && !narrow_by_links(p, left, i, &changed))
				return false;
		}
		if (p->rules >= SEARCH_TOGETHER && !narrow_by_regions(p, left, &changed))
			return false;
	} while (changed);
	return true;
}
