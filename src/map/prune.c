// SPDX-License-Identifier: GPL-2.0-only
/* Leaves candidates out that the rules between GPUs rule out, without trying anything. What remains
 * may still be impossible together: that is the search's business. */
#include "map/prune.h"

#include "map/matching.h"

struct gpu_set prune_by_cpu_link(const struct search_problem *p, size_t saved)
{
	struct gpu_set fit = { 0 };

	for (size_t i = 0; i < p->local->num_gpus; i++) {
		if (links_cpu_link_serves(p->saved, saved, p->local, i))
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

	set_for_each (i, &p->wanted) {
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
	set_for_each (i, &p->wanted) {
		if (set_count(&left[i]) > 1 && !keep_only(&left[i], &open, changed))
			return false;
	}
	return true;
}

/* Whether all @peers find room among the GPUs linked to local GPU @to. */
static bool peers_have_room(const struct search_problem *p, const struct gpu_set *left,
			    const struct gpu_set *peers, size_t to)
{
	struct gpu_set sets[GPU_SET_MAX];
	size_t count = 0;

	set_for_each (i, peers)
		sets[count++] = set_and(&left[i], &p->local->xgmi[to]);
	return matching_exists(sets, count);
}

/* Peers of saved GPU @i can only be where a link from one of its candidates leads to; and a
 * candidate must have as many links into where the peers can be as there are peers. */
static bool narrow_by_links(const struct narrowing *n, struct gpu_set *left, size_t i,
			    bool *changed)
{
	const struct search_problem *p = n->problem;
	struct gpu_set peers = set_and(&p->saved->xgmi[i], &p->wanted);
	struct gpu_set reach = { 0 }, pool = { 0 }, fit = { 0 };
	size_t num_peers = set_count(&peers);

	if (!num_peers)
		return true;
	set_for_each (j, &left[i])
		set_add_all(&reach, &p->local->xgmi[j]);
	set_for_each (peer, &peers) {
		if (!keep_only(&left[peer], &reach, changed))
			return false;
		set_add_all(&pool, &left[peer]);
	}
	set_for_each (j, &left[i]) {
		struct gpu_set linked = set_and(&p->local->xgmi[j], &pool);

		if (set_count(&linked) >= num_peers &&
		    (!n->thorough || peers_have_room(p, left, &peers, j)))
			set_add(&fit, j);
	}
	return keep_only(&left[i], &fit, changed);
}

/* Whether all of a saved block find room among the GPUs of local block @to. */
static bool has_room(const struct blocking *blocking, const struct gpu_set *left, size_t block,
		     size_t to)
{
	struct gpu_set sets[GPU_SET_MAX];
	size_t count = 0;

	set_for_each (i, &blocking->saved.members[block]) {
		sets[count] = set_and(&left[i], &blocking->local.members[to]);
		if (set_is_empty(&sets[count++]))
			return false;
	}
	return matching_exists(sets, count);
}

struct gpu_set prune_groups_for(const struct blocking *blocking, const struct gpu_set *left,
				size_t block)
{
	struct gpu_set blocks = { 0 };

	for (size_t i = 0; i < blocking->local.count; i++) {
		if (has_room(blocking, left, block, i))
			set_add(&blocks, i);
	}
	return blocks;
}

/* A block can only be in blocks that have room for it. */
static bool narrow_block(const struct blocking *blocking, struct gpu_set *left, size_t block,
			 const struct gpu_set *blocks, bool *changed)
{
	struct gpu_set room = { 0 };

	set_for_each (i, blocks)
		set_add_all(&room, &blocking->local.members[i]);
	set_for_each (i, &blocking->saved.members[block]) {
		if (!keep_only(&left[i], &room, changed))
			return false;
	}
	return true;
}

/* What must be one block's is no other's. */
static bool narrow_others(const struct blocking *blocking, struct gpu_set *left, size_t block,
			  size_t taken, bool *changed)
{
	for (size_t other = 0; other < blocking->saved.count; other++) {
		if (other == block)
			continue;
		set_for_each (i, &blocking->saved.members[other]) {
			struct gpu_set rest =
				set_without(&left[i], &blocking->local.members[taken]);

			if (!keep_only(&left[i], &rest, changed))
				return false;
		}
	}
	return true;
}

static bool narrow_by_blocks(const struct blocking *blocking, struct gpu_set *left, bool *changed)
{
	struct gpu_set blocks[GPU_SET_MAX];

	for (size_t i = 0; i < blocking->saved.count; i++) {
		size_t first;

		blocks[i] = prune_groups_for(blocking, left, i);
		if (!narrow_block(blocking, left, i, &blocks[i], changed))
			return false;
		first = set_next(&blocks[i], 0);
		if (blocking->apart && set_next(&blocks[i], first + 1) == GPU_SET_MAX &&
		    !narrow_others(blocking, left, i, first, changed))
			return false;
	}
	return !blocking->apart || matching_exists(blocks, blocking->saved.count);
}

bool prune_all(const struct narrowing *n, struct gpu_set *left)
{
	bool changed;

	do {
		changed = false;
		if (!narrow_by_taken(n->problem, left, &changed))
			return false;
		set_for_each (i, &n->problem->wanted) {
			if (n->problem->rules >= SEARCH_LINKS &&
			    !narrow_by_links(n, left, i, &changed))
				return false;
		}
		for (size_t i = 0; i < n->num_blockings; i++) {
			if (!narrow_by_blocks(&n->blockings[i], left, &changed))
				return false;
		}
	} while (changed);
	return true;
}

/* Whether any two saved blocks have more GPUs than any local block. */
static bool two_are_too_many(const struct blocking *blocking)
{
	size_t least = GPU_SET_MAX, second = GPU_SET_MAX, most = 0;

	for (size_t i = 0; i < blocking->saved.count; i++) {
		size_t size = set_count(&blocking->saved.members[i]);

		second = size < least ? least : size < second ? size : second;
		least = size < least ? size : least;
	}
	for (size_t i = 0; i < blocking->local.count; i++) {
		size_t size = set_count(&blocking->local.members[i]);

		most = size > most ? size : most;
	}
	return blocking->saved.count > 1 && least + second > most;
}

void prune_init(const struct search_problem *p, struct narrowing *n)
{
	struct gpu_set all = set_of_first(p->local->num_gpus);

	n->problem = p;
	n->num_blockings = 0;
	n->thorough = false;
	if (p->rules >= SEARCH_LINKS) {
		struct blocking *hives = &n->blockings[n->num_blockings++];

		links_hives(p->saved, &p->wanted, &hives->saved);
		links_hives(p->local, &all, &hives->local);
		hives->apart = two_are_too_many(hives);
	}
	if (p->rules >= SEARCH_TOGETHER) {
		struct blocking *regions = &n->blockings[n->num_blockings++];

		links_numa_groups(p->saved, &p->wanted, &regions->saved);
		links_numa_groups(p->local, &all, &regions->local);
		regions->apart = p->rules == SEARCH_APART;
	}
}
