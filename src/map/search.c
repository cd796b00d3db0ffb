// SPDX-License-Identifier: GPL-2.0-only
/* The search for an assignment. An attempt narrows down what each saved GPU may become by the
 * rules, and matches what is left one to one; if that match happens to keep all rules, it is the
 * best that the attempt can give, and else the attempt is split at a rule that the match breaks. */
#include "map/search.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "map/bound.h"
#include "map/matching.h"
#include "map/prune.h"
#include "map/twins.h"

/* Attempts from which on a search is long. */
#define SEARCH_LONG 500

/* An attempt. Rows beyond the wanted GPUs are fillers for the local GPUs that stay free. */
struct attempt {
	struct gpu_set left[GPU_SET_MAX];
	struct matching matching;
};

struct search {
	const struct search_problem *problem;
	struct narrowing narrowing;
	struct gpu_set same[GPU_SET_MAX];
	/* One a level: going back is going up, nothing is to be undone. */
	struct attempt *attempts;
	struct tried *tried;
	struct search_result *result;
	/* 0 for the very same GPU, and for fillers; else 1. */
	struct costs costs;
	struct bound_room bound_room;
	/* How many GPUs the best assignment so far keeps on the very same; what does not better it
	 * is of no interest. -1: none so far. */
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

	set_for_each (i, &search->problem->wanted)
		count += set_has(&search->same[i], match_of(a, i));
	return count;
}

/* At least as many GPUs as any assignment of this attempt can keep on the very same ones. */
static int bound_of(struct search *search, const struct attempt *a)
{
	const struct gpu_set *wanted = &search->problem->wanted;
	int bound = count_same(search, a);
	struct gpu_set kept_if[GPU_SET_MAX];

	set_for_each (i, wanted)
		kept_if[i] = set_and(&search->same[i], &a->left[i]);
	for (size_t i = 0; i < search->narrowing.num_blockings; i++) {
		int other = prune_bound(&search->bound_room, &search->narrowing.blockings[i],
					wanted, kept_if);

		if (other < bound)
			bound = other;
	}
	return bound;
}

/* Whether the match has GPUs @i and @j together or apart as @blocking wants. */
static bool blocks_agree(const struct blocking *blocking, const struct attempt *a, size_t i,
			 size_t j)
{
	int saved_i = blocking->saved.of[i], saved_j = blocking->saved.of[j];
	bool together;

	if (saved_i == NO_BLOCK || saved_j == NO_BLOCK)
		return true;
	together = blocking->local.of[match_of(a, i)] == blocking->local.of[match_of(a, j)];
	if (saved_i == saved_j)
		return together;
	return !blocking->apart || !together;
}

static bool links_agree(const struct search_problem *p, const struct attempt *a, size_t i, size_t j)
{
	return p->rules < SEARCH_LINKS || !set_has(&p->saved->xgmi[i], j) ||
	       set_has(&p->local->xgmi[match_of(a, i)], match_of(a, j));
}

/* What the match breaks a rule with, and how many ways out there are: a block with several local
 * blocks to choose from, or a GPU with several candidates. */
struct conflict {
	const struct blocking *blocking;
	size_t block;
	size_t gpu;
	size_t ways;
};

static void note_block_conflict(const struct blocking *blocking, const struct attempt *a,
				size_t block, struct conflict *conflict)
{
	struct gpu_set blocks = prune_groups_for(blocking, a->left, block);
	size_t count = set_count(&blocks);

	if (count > 1 && (!conflict->blocking || count < conflict->ways))
		*conflict =
			(struct conflict){ .blocking = blocking, .block = block, .ways = count };
}

static void note_gpu_conflict(const struct attempt *a, size_t gpu, struct conflict *conflict)
{
	size_t count = set_count(&a->left[gpu]);

	if (count > 1 && !conflict->blocking && (!conflict->ways || count < conflict->ways))
		*conflict = (struct conflict){ .gpu = gpu, .ways = count };
}

static bool find_block_conflict(const struct search *search, const struct attempt *a,
				const struct blocking *blocking, struct conflict *conflict)
{
	bool found = false;

	for (size_t block = 0; block < blocking->saved.count; block++) {
		bool agree = true;

		set_for_each (i, &blocking->saved.members[block]) {
			set_for_each (j, &search->problem->wanted)
				agree &= i == j || blocks_agree(blocking, a, i, j);
		}
		if (!agree)
			note_block_conflict(blocking, a, block, conflict);
		found |= !agree;
	}
	return found;
}

/* Where to split the attempt: blocks first, as they decide for many GPUs, and at the conflict with
 * the fewest ways out. false: there is no conflict. */
static bool find_conflict(const struct search *search, const struct attempt *a,
			  struct conflict *ret_conflict)
{
	const struct search_problem *p = search->problem;
	bool found = false;

	*ret_conflict = (struct conflict){ 0 };
	for (size_t i = 0; i < search->narrowing.num_blockings; i++)
		found |= find_block_conflict(search, a, &search->narrowing.blockings[i],
					     ret_conflict);
	set_for_each (i, &p->wanted) {
		struct gpu_set peers = set_and(&p->saved->xgmi[i], &p->wanted);
		bool agree = true;

		set_for_each (j, &peers)
			agree &= links_agree(p, a, i, j);
		if (!agree)
			note_gpu_conflict(a, i, ret_conflict);
		found |= !agree;
	}
	return found;
}

static void note_best(struct search *search, const struct attempt *a, int same)
{
	search->best = same;
	set_for_each (i, &search->problem->wanted)
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

/* The choices of a split that have been tried: sets of local GPUs, one of which each. */
struct tried {
	struct gpu_set sets[GPU_SET_MAX];
	enum verdict verdicts[GPU_SET_MAX];
	size_t count;
};

/* The verdict on a twin of @choice that has been tried, if that settles @choice too. */
static bool settled_by_twin(const struct search *search, const struct attempt *attempt,
			    const struct gpu_set *choice, const struct tried *tried,
			    enum verdict *verdict)
{
	for (size_t i = 0; i < tried->count; i++) {
		/* What bettered nothing may only be the like of what stays as much the same. */
		const struct gpu_set *same = tried->verdicts[i] == IMPOSSIBLE ? NULL : search->same;

		if (!are_twins(search->problem, attempt->left, same, choice, &tried->sets[i]))
			continue;
		*verdict = worse(*verdict,
				 tried->verdicts[i] == FOUND ? NO_BETTER : tried->verdicts[i]);
		return true;
	}
	return false;
}

static void note_tried(struct tried *tried, const struct gpu_set *choice, enum verdict verdict)
{
	tried->sets[tried->count] = *choice;
	tried->verdicts[tried->count++] = verdict;
}

static enum verdict try_block(struct search *search, size_t level, const struct conflict *conflict,
			      size_t block)
{
	struct attempt *next = &search->attempts[level + 1];
	const struct blocking *blocking = conflict->blocking;

	*next = search->attempts[level];
	set_for_each (i, &blocking->saved.members[conflict->block])
		next->left[i] = set_and(&next->left[i], &blocking->local.members[block]);
	return descend(search, level + 1);
}

static enum verdict split_by_block(struct search *search, size_t level,
				   const struct conflict *conflict, int bound)
{
	const struct attempt *attempt = &search->attempts[level];
	const struct blocking *blocking = conflict->blocking;
	struct gpu_set blocks = prune_groups_for(blocking, attempt->left, conflict->block);
	struct tried *tried = &search->tried[level];
	enum verdict verdict = IMPOSSIBLE;

	tried->count = 0;
	set_for_each (block, &blocks) {
		const struct gpu_set *choice = &blocking->local.members[block];
		enum verdict found;

		if (settled_by_twin(search, attempt, choice, tried, &verdict))
			continue;
		found = try_block(search, level, conflict, block);
		verdict = worse(verdict, found);
		note_tried(tried, choice, found);
		if (satisfied(search, bound))
			break;
	}
	return verdict;
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
	struct tried *tried = &search->tried[level];
	struct gpu_set untried = attempt->left[saved];
	enum verdict verdict = IMPOSSIBLE;

	tried->count = 0;
	for (size_t i = match_of(attempt, saved); i < GPU_SET_MAX; i = set_next(&untried, 0)) {
		struct gpu_set choice = set_of(i);
		enum verdict found;

		set_remove(&untried, i);
		if (settled_by_twin(search, attempt, &choice, tried, &verdict))
			continue;
		found = try_gpu(search, level, saved, i);
		verdict = worse(verdict, found);
		note_tried(tried, &choice, found);
		if (satisfied(search, bound))
			break;
	}
	return verdict;
}

static enum verdict descend(struct search *search, size_t level)
{
	struct attempt *attempt = &search->attempts[level];
	struct conflict conflict;
	int bound;

	if (++search->result->attempts > SEARCH_ATTEMPTS_MAX) {
		search->given_up = true;
		return NO_BETTER;
	}
	search->narrowing.thorough = search->result->attempts > SEARCH_LONG;
	if (!prune_all(&search->narrowing, attempt->left) ||
	    !matching_update(&attempt->matching, attempt->left, &search->costs))
		return IMPOSSIBLE;
	bound = bound_of(search, attempt);
	if (bound <= search->best)
		return NO_BETTER;
	if (!find_conflict(search, attempt, &conflict)) {
		note_best(search, attempt, count_same(search, attempt));
		return FOUND;
	}
	if (conflict.blocking)
		return split_by_block(search, level, &conflict, bound);
	if (conflict.ways)
		return split_by_gpu(search, level, conflict.gpu, bound);
	return IMPOSSIBLE;
}

static void search_free(struct search **search)
{
	if (!*search)
		return;
	free((*search)->attempts);
	free((*search)->tried);
	free(*search);
}

static int search_init(const struct search_problem *p, struct search_result *result,
		       struct search *search)
{
	/* Each level settles a GPU, or a block of one kind or the other. The kernel gives memory
	 * only to levels that are used. */
	size_t levels = 3 * set_count(&p->wanted) + 2;
	struct gpu_set all = set_of_first(p->local->num_gpus);
	struct attempt *first;

	search->problem = p;
	search->result = result;
	search->best = -1;
	search->attempts = calloc(levels, sizeof(*search->attempts));
	search->tried = calloc(levels, sizeof(*search->tried));
	if (!search->attempts || !search->tried)
		return -ENOMEM;
	prune_init(p, &search->narrowing);
	first = &search->attempts[0];
	first->matching.size = p->local->num_gpus;
	for (size_t i = 0; i < p->local->num_gpus; i++) {
		struct gpu_set fit;

		search->same[i] = first->left[i] = all;
		if (!set_has(&p->wanted, i))
			continue;
		fit = p->rules >= SEARCH_TOGETHER ? prune_by_cpu_link(p, i) : all;
		first->left[i] = set_and(&p->candidates[i], &fit);
		search->same[i] = p->same[i];
		for (size_t j = 0; j < p->local->num_gpus; j++)
			search->costs.of[i][j] = !set_has(&p->same[i], j);
	}
	return 0;
}

/* Whether an assignment as good as the best so far gives saved GPU @saved the
 * lower local GPU @local. */
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
	struct tried *failed = &search->tried[0];
	struct gpu_set open = set_of_first(search->problem->local->num_gpus);

	set_for_each (i, &search->problem->wanted) {
		struct gpu_set choices = set_and(&first->left[i], &open);

		if (set_next(&choices, 0) < search->result->local_of[i]) {
			(void)prune_all(&search->narrowing, first->left);
			choices = first->left[i];
		}
		failed->count = 0;
		set_for_each (j, &choices) {
			struct gpu_set choice = set_of(j);
			enum verdict verdict;

			if (j >= search->result->local_of[i] || search->given_up)
				break;
			if (settled_by_twin(search, first, &choice, failed, &verdict))
				continue;
			if (can_be_lower(search, i, j))
				break;
			note_tried(failed, &choice, NO_BETTER);
		}
		first->left[i] = set_of(search->result->local_of[i]);
		set_remove(&open, search->result->local_of[i]);
	}
}

static int run(const struct search_problem *problem, struct search_result *result, bool any_will_do)
{
	_cleanup_(search_free) struct search *search = calloc(1, sizeof(*search));
	int ret;

	ret = search ? search_init(problem, result, search) : -ENOMEM;
	if (ret < 0)
		return ret;
	search->any_will_do = any_will_do;
	(void)descend(search, 0);
	if (!search->given_up && search->best >= 0 && !any_will_do)
		lower(search);
	if (search->best >= 0)
		return 0;
	return search->given_up ? -E2BIG : -ESRCH;
}

int search_best(const struct search_problem *problem, struct search_result *result)
{
	return run(problem, result, false);
}

int search_any(const struct search_problem *problem, struct search_result *result)
{
	return run(problem, result, true);
}
