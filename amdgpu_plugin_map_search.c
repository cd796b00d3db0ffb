// SPDX-License-Identifier: GPL-2.0-only
/* The search for an assignment. An attempt narrows down what each saved GPU may become by the rules, and
 * matches what is left one to one; if that match happens to keep all rules, it is the best that the
 * attempt can give, and else the attempt is split at a rule that the match breaks. */
#include "amdgpu_plugin_map_search.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_map_match.h"
#include "amdgpu_plugin_map_narrow.h"
#include "amdgpu_plugin_util.h"

/* An attempt. Rows beyond the wanted GPUs are fillers for the local GPUs that stay free. */
struct attempt {
	struct gpu_set left[GPU_SET_MAX];
	struct matching matching;
};

struct search {
	const struct search_problem *problem;
	struct gpu_set same[GPU_SET_MAX];
	/* One a level: going back is going up, nothing is to be undone. */
	struct attempt *attempts;
	struct search_result *result;
	/* How many GPUs the best assignment so far keeps on the very same; what does not better it is of
	 * no interest. -1: none so far. */
	int best;
	bool any_will_do;
	bool given_up;
};

enum verdict {
	IMPOSSIBLE,
	/* There may be assignments, but none that betters the best. */
	NO_BETTER,
	FOUND,
};

static size_t match_of(const struct attempt *a, size_t saved)
{
	return a->matching.column_of[saved] - 1u;
}

static int count_same(const struct search *search, const struct attempt *a)
{
	int count = 0;

	set_for_each(i, &search->problem->wanted)
		count += set_has(&search->same[i], match_of(a, i));
	return count;
}

/* Whether the match has GPUs @i and @j, of different machines' CPU nodes or of the same, as they must be. */
static bool regions_agree(const struct search_problem *p, const struct attempt *a, size_t i, size_t j)
{
	int saved_i = p->saved->region_of[i], saved_j = p->saved->region_of[j];
	bool together;

	if (p->rules < SEARCH_TOGETHER || saved_i == NO_REGION || saved_j == NO_REGION)
		return true;
	together = p->local->region_of[match_of(a, i)] == p->local->region_of[match_of(a, j)];
	if (saved_i == saved_j)
		return together;
	return p->rules < SEARCH_APART || !together;
}

static bool links_agree(const struct search_problem *p, const struct attempt *a, size_t i, size_t j)
{
	return p->rules < SEARCH_LINKS || !set_has(&p->saved->xgmi[i], j) ||
	       set_has(&p->local->xgmi[match_of(a, i)], match_of(a, j));
}

/* What the match breaks a rule with. */
struct conflict {
	/* The group of a CPU node, where some have more than one region to choose from. */
	size_t region;
	size_t num_regions;
	/* A GPU with more than one candidate. */
	size_t gpu;
	size_t num_candidates;
};

static void note_region_conflict(const struct search_problem *p, const struct attempt *a, size_t gpu,
				 struct conflict *conflict)
{
	size_t region = (size_t)p->saved->region_of[gpu];
	struct gpu_set group = narrow_group_of(p, region);
	struct gpu_set regions = narrow_regions_for(p, a->left, &group);
	size_t count = set_count(&regions);

	if (count > 1 && (!conflict->num_regions || count < conflict->num_regions)) {
		conflict->region = region;
		conflict->num_regions = count;
	}
}

static void note_gpu_conflict(const struct attempt *a, size_t gpu, struct conflict *conflict)
{
	size_t count = set_count(&a->left[gpu]);

	if (count > 1 && (!conflict->num_candidates || count < conflict->num_candidates)) {
		conflict->gpu = gpu;
		conflict->num_candidates = count;
	}
}

/* Where to split the attempt: at the conflict with the fewest ways out. false: there is no conflict. */
static bool find_conflict(const struct search_problem *p, const struct attempt *a,
			  struct conflict *ret_conflict)
{
	bool found = false;

	*ret_conflict = (struct conflict){ 0 };
	set_for_each(i, &p->wanted) {
		bool links = true, regions = true;

		set_for_each(j, &p->wanted) {
			links &= i == j || links_agree(p, a, i, j);
			regions &= i == j || regions_agree(p, a, i, j);
		}
		if (!links)
			note_gpu_conflict(a, i, ret_conflict);
		if (!regions)
			note_region_conflict(p, a, i, ret_conflict);
		found |= !links || !regions;
	}
	return found;
}

static void note_best(struct search *search, const struct attempt *a, int same)
{
	search->best = same;
	set_for_each(i, &search->problem->wanted)
		search->result->local_of[i] = (uint16_t)match_of(a, i);
}

static bool satisfied(const struct search *search, int bound)
{
	return search->given_up || search->best >= (search->any_will_do ? 0 : bound);
}

static enum verdict descend(struct search *search, size_t level);

static enum verdict worse(enum verdict a, enum verdict b)
{
	return a > b ? a : b;
}

static enum verdict try_region(struct search *search, size_t level, const struct gpu_set *group,
			       size_t region)
{
	struct attempt *next = &search->attempts[level + 1];

	*next = search->attempts[level];
	set_for_each(i, group)
		next->left[i] = set_and(&next->left[i], &search->problem->local->members[region]);
	return descend(search, level + 1);
}

static enum verdict split_by_region(struct search *search, size_t level, size_t saved_region, int bound)
{
	struct gpu_set group = narrow_group_of(search->problem, saved_region);
	struct gpu_set regions = narrow_regions_for(search->problem, search->attempts[level].left, &group);
	enum verdict verdict = IMPOSSIBLE;

	set_for_each(region, &regions) {
		verdict = worse(verdict, try_region(search, level, &group, region));
		if (satisfied(search, bound))
			break;
	}
	return verdict;
}

/* Whether local GPUs @a and @b could change places in every assignment: what failed with one fails with
 * the other. Hives are full of such twins. */
static bool are_twins(const struct search *search, const struct attempt *attempt, size_t a, size_t b,
		      bool also_same)
{
	const struct search_problem *p = search->problem;
	struct gpu_set peers_a = p->local->xgmi[a], peers_b = p->local->xgmi[b];

	set_remove(&peers_a, b);
	set_remove(&peers_b, a);
	if (!set_equal(&peers_a, &peers_b))
		return false;
	if (p->rules >= SEARCH_TOGETHER && p->local->region_of[a] != p->local->region_of[b])
		return false;
	set_for_each(i, &p->wanted) {
		if (set_has(&attempt->left[i], a) != set_has(&attempt->left[i], b))
			return false;
		if (also_same && set_has(&search->same[i], a) != set_has(&search->same[i], b))
			return false;
	}
	return true;
}

/* The verdict on a twin of @local that has been tried, if that settles @local too. */
static bool settled_by_twin(const struct search *search, const struct attempt *attempt, size_t local,
			    const struct gpu_set *tried, const enum verdict *verdicts,
			    enum verdict *ret_verdict)
{
	set_for_each(i, tried) {
		if (!are_twins(search, attempt, local, i, verdicts[i] != IMPOSSIBLE))
			continue;
		*ret_verdict = verdicts[i] == FOUND ? NO_BETTER : verdicts[i];
		return true;
	}
	return false;
}

static enum verdict try_gpu(struct search *search, size_t level, size_t saved, size_t local)
{
	struct attempt *next = &search->attempts[level + 1];

	*next = search->attempts[level];
	next->left[saved] = set_of(local);
	return descend(search, level + 1);
}

/* The local GPU of the match is tried first. */
static enum verdict split_by_gpu(struct search *search, size_t level, size_t saved, int bound)
{
	const struct attempt *attempt = &search->attempts[level];
	size_t matched = match_of(attempt, saved);
	struct gpu_set untried = attempt->left[saved], tried = { 0 };
	enum verdict verdicts[GPU_SET_MAX], verdict = IMPOSSIBLE;

	for (size_t i = matched; i < GPU_SET_MAX; i = set_next(&untried, 0)) {
		set_remove(&untried, i);
		if (settled_by_twin(search, attempt, i, &tried, verdicts, &verdicts[i])) {
			verdict = worse(verdict, verdicts[i]);
			continue;
		}
		verdicts[i] = try_gpu(search, level, saved, i);
		verdict = worse(verdict, verdicts[i]);
		set_add(&tried, i);
		if (satisfied(search, bound))
			break;
	}
	return verdict;
}

static enum verdict descend(struct search *search, size_t level)
{
	const struct search_problem *p = search->problem;
	struct attempt *attempt = &search->attempts[level];
	struct conflict conflict;
	int bound;

	if (++search->result->attempts > SEARCH_ATTEMPTS_MAX) {
		search->given_up = true;
		return NO_BETTER;
	}
	if (!narrow_all(p, attempt->left) || !matching_update(&attempt->matching, attempt->left, search->same))
		return IMPOSSIBLE;
	bound = count_same(search, attempt);
	if (bound <= search->best)
		return NO_BETTER;
	if (!find_conflict(p, attempt, &conflict)) {
		note_best(search, attempt, bound);
		return FOUND;
	}
	if (conflict.num_regions)
		return split_by_region(search, level, conflict.region, bound);
	if (conflict.num_candidates)
		return split_by_gpu(search, level, conflict.gpu, bound);
	return IMPOSSIBLE;
}

static void search_done(struct search *search)
{
	free(search->attempts);
}

static int search_init(const struct search_problem *p, struct search_result *result,
		       struct search *search)
{
	/* Each level settles a GPU or a region. The kernel gives memory only to levels that are used. */
	size_t levels = set_count(&p->wanted) + p->saved->num_regions + 2;
	struct gpu_set all = set_of_first(p->local->num_gpus);
	struct attempt *first;

	*search = (struct search){ .problem = p, .result = result, .best = -1 };
	search->attempts = calloc(levels, sizeof(*search->attempts));
	if (!search->attempts)
		return -ENOMEM;
	first = &search->attempts[0];
	first->matching.size = p->local->num_gpus;
	for (size_t i = 0; i < p->local->num_gpus; i++) {
		struct gpu_set fit;

		search->same[i] = first->left[i] = all;
		if (!set_has(&p->wanted, i))
			continue;
		fit = p->rules >= SEARCH_TOGETHER ? narrow_by_cpu_link(p, i) : all;
		first->left[i] = set_and(&p->candidates[i], &fit);
		search->same[i] = p->same[i];
	}
	return 0;
}

/* Whether an assignment as good as the best so far gives saved GPU @saved the lower local GPU @local. */
static bool can_be_lower(struct search *search, size_t saved, size_t local)
{
	int best = search->best;
	bool found;

	search->best = best - 1;
	found = try_gpu(search, 0, saved, local) == FOUND && search->best == best;
	search->best = best;
	return found;
}

/* Gives each saved GPU in turn the lowest local one that a best assignment can give it. */
static void lower(struct search *search)
{
	struct attempt *first = &search->attempts[0];

	set_for_each(i, &search->problem->wanted) {
		struct gpu_set failed = { 0 };
		enum verdict verdicts[GPU_SET_MAX], verdict;

		set_for_each(j, &first->left[i]) {
			if (j >= search->result->local_of[i] || search->given_up)
				break;
			verdicts[j] = NO_BETTER;
			if (settled_by_twin(search, first, j, &failed, verdicts, &verdict))
				continue;
			if (can_be_lower(search, i, j))
				break;
			set_add(&failed, j);
		}
		first->left[i] = set_of(search->result->local_of[i]);
		(void)narrow_all(search->problem, first->left);
	}
}

static int run(const struct search_problem *problem, struct search_result *result, bool any_will_do)
{
	_cleanup_(search_done) struct search search = { 0 };
	int ret;

	ret = search_init(problem, result, &search);
	if (ret < 0)
		return ret;
	search.any_will_do = any_will_do;
	(void)descend(&search, 0);
	if (!search.given_up && search.best >= 0 && !any_will_do)
		lower(&search);
	if (search.given_up)
		return -E2BIG;
	return search.best < 0 ? -ESRCH : 0;
}

int search_best(const struct search_problem *problem, struct search_result *result)
{
	return run(problem, result, false);
}

int search_any(const struct search_problem *problem, struct search_result *result)
{
	return run(problem, result, true);
}
