// SPDX-License-Identifier: GPL-2.0-only
/* Branch and bound. A search node prunes the domains of the saved GPUs and matches them one to one
 * at the least cost. If the matching keeps all rules, it is the best assignment of this node;
 * otherwise the search branches at a rule that the matching breaks. */
#include "map/search.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "map/matching.h"
#include "map/prune.h"

/* After this number of attempts each node prunes more thoroughly. */
#define SEARCH_LONG 500

/* Rows of the matching beyond the wanted GPUs stand for no GPU and take the unused local GPUs. */
struct search_node {
	uint64_t domains[GPU_SET_MAX];
	struct matching matching;
};

struct search {
	const struct search_problem *problem;
	struct pruning pruning;
	/* By level of the tree: to backtrack the search returns to the level above. */
	struct search_node *nodes;
	struct search_result *result;
	/* WORTH_MAX less the worth; 0 for rows without GPU. */
	struct costs costs;
	struct bound_buffer bound_buffer;
	/* The worth of the best assignment so far, or -1 before there is one. The search ignores
	 * nodes that cannot exceed it. */
	int best;
	bool any_will_do;
	bool given_up;
};

struct search_problem search_problem_of(const struct map_input *in, unsigned int rules)
{
	return (struct search_problem){ in, set_of_first(in->saved.num_gpus), in->candidates,
					rules };
}

static size_t match_of(const struct search_node *node, size_t saved)
{
	return node->matching.column_of[saved] - 1u;
}

static int sum_worth(const struct search *search, const struct search_node *node)
{
	int sum = 0;

	set_for_each (i, search->problem->wanted)
		sum += prune_worth(search->problem, i, set_of(match_of(node, i)));
	return sum;
}

/* No assignment of this node is worth more. */
static int upper_bound(struct search *search, const struct search_node *node)
{
	int bound = sum_worth(search, node);

	for (size_t i = 0; i < search->pruning.num_rules; i++) {
		int other = prune_bound(&search->bound_buffer, &search->pruning.rules[i],
					search->problem, node->domains);

		if (other < bound)
			bound = other;
	}
	return bound;
}

/* Whether the matching keeps @rule for saved GPUs @i and @j. */
static bool keeps_rule(const struct group_rule *rule, const struct search_node *node, size_t i,
		       size_t j)
{
	int saved_i = rule->saved.of[i], saved_j = rule->saved.of[j];
	bool together;

	if (saved_i == NO_GROUP || saved_j == NO_GROUP)
		return true;
	together = rule->local.of[match_of(node, i)] == rule->local.of[match_of(node, j)];
	if (saved_i == saved_j)
		return together;
	return !rule->apart || !together;
}

static bool keeps_peers(const struct pruning *pruning, const struct search_node *node, size_t i)
{
	for (size_t rule = 0; rule < pruning->num_peer_rules; rule++) {
		const struct peer_rule *r = &pruning->peer_rules[rule];

		set_for_each (j, r->saved[i] & pruning->problem->wanted) {
			if (!set_has(r->local[match_of(node, i)], match_of(node, j)))
				return false;
		}
	}
	return true;
}

static bool group_keeps_rule(const struct search_problem *p, const struct group_rule *rule,
			     const struct search_node *node, size_t group)
{
	set_for_each (i, rule->saved.members[group]) {
		set_for_each (j, p->wanted) {
			if (i != j && !keeps_rule(rule, node, i, j))
				return false;
		}
	}
	return true;
}

/* A rule that the matching breaks, and the number of branches there: the local groups for a saved
 * group, or the local GPUs for a saved GPU. */
struct conflict {
	/* NULL: the conflict is about @gpu. */
	const struct group_rule *rule;
	size_t group;
	size_t gpu;
	/* 0: all conflicts so far leave no choice. */
	size_t branches;
};

static void note_group_conflict(const struct group_rule *rule, const struct search_node *node,
				size_t group, struct conflict *conflict)
{
	size_t count = set_count(prune_groups_for(rule, node->domains, group));

	if (count > 1 && (!conflict->rule || count < conflict->branches))
		*conflict = (struct conflict){ .rule = rule, .group = group, .branches = count };
}

static void note_gpu_conflict(const struct search_node *node, size_t gpu, struct conflict *conflict)
{
	size_t count = set_count(node->domains[gpu]);

	if (count > 1 && !conflict->rule && (!conflict->branches || count < conflict->branches))
		*conflict = (struct conflict){ .gpu = gpu, .branches = count };
}

static bool find_group_conflict(const struct search_problem *p, const struct search_node *node,
				const struct group_rule *rule, struct conflict *conflict)
{
	bool found = false;

	for (size_t group = 0; group < rule->saved.count; group++) {
		if (group_keeps_rule(p, rule, node, group))
			continue;
		found = true;
		note_group_conflict(rule, node, group, conflict);
	}
	return found;
}

/* Finds the conflict with the fewest branches. Groups go before GPUs, as a group decides for many
 * GPUs. false: the matching keeps all rules. */
static bool find_conflict(const struct search *search, const struct search_node *node,
			  struct conflict *ret_conflict)
{
	const struct search_problem *p = search->problem;
	bool found = false;

	*ret_conflict = (struct conflict){ 0 };
	for (size_t i = 0; i < search->pruning.num_rules; i++)
		found |= find_group_conflict(p, node, &search->pruning.rules[i], ret_conflict);
	set_for_each (i, p->wanted) {
		if (keeps_peers(&search->pruning, node, i))
			continue;
		found = true;
		note_gpu_conflict(node, i, ret_conflict);
	}
	return found;
}

static void note_best(struct search *search, const struct search_node *node)
{
	search->best = sum_worth(search, node);
	set_for_each (i, search->problem->wanted)
		search->result->local_of[i] = (uint16_t)match_of(node, i);
}

/* Whether the other branches of a node with @bound are of no use. */
static bool is_settled(const struct search *search, int bound)
{
	return search->given_up || search->best >= (search->any_will_do ? 0 : bound);
}

static void visit(struct search *search, size_t level);

static void branch_by_group(struct search *search, size_t level, const struct conflict *conflict,
			    int bound)
{
	const struct search_node *node = &search->nodes[level];
	struct search_node *next = &search->nodes[level + 1];
	const struct group_rule *rule = conflict->rule;
	uint64_t groups = prune_groups_for(rule, node->domains, conflict->group);

	set_for_each (group, groups) {
		*next = *node;
		set_for_each (i, rule->saved.members[conflict->group])
			next->domains[i] &= rule->local.members[group];
		visit(search, level + 1);
		if (is_settled(search, bound))
			return;
	}
}

static void try_gpu(struct search *search, size_t level, size_t saved, size_t local)
{
	struct search_node *next = &search->nodes[level + 1];

	*next = search->nodes[level];
	next->domains[saved] = set_of(local);
	visit(search, level + 1);
}

/* Starts with the local GPU of the matching. */
static void branch_by_gpu(struct search *search, size_t level, size_t saved, int bound)
{
	const struct search_node *node = &search->nodes[level];
	uint64_t untried = node->domains[saved];

	for (size_t i = match_of(node, saved); i < GPU_SET_MAX; i = set_next(untried, 0)) {
		untried &= ~set_of(i);
		try_gpu(search, level, saved, i);
		if (is_settled(search, bound))
			return;
	}
}

static void visit(struct search *search, size_t level)
{
	struct search_node *node = &search->nodes[level];
	struct conflict conflict;
	int bound;

	if (++search->result->attempts > SEARCH_ATTEMPTS_MAX) {
		search->given_up = true;
		return;
	}
	search->pruning.thorough = search->result->attempts > SEARCH_LONG;
	if (!prune_all(&search->pruning, node->domains) ||
	    !matching_update(&node->matching, node->domains, &search->costs))
		return;
	bound = upper_bound(search, node);
	if (bound <= search->best)
		return;
	if (!find_conflict(search, node, &conflict))
		note_best(search, node);
	else if (conflict.rule)
		branch_by_group(search, level, &conflict, bound);
	else if (conflict.branches)
		branch_by_gpu(search, level, conflict.gpu, bound);
}

static void search_free(struct search **search)
{
	if (!*search)
		return;
	free((*search)->nodes);
	free(*search);
}

static int search_init(const struct search_problem *p, struct search_result *result,
		       struct search *search)
{
	/* Each level assigns a GPU, or a group of one of the two rules. The kernel provides memory
	 * only for levels that the search reaches. */
	size_t levels = 3 * set_count(p->wanted) + 2;
	const size_t num_gpus = p->in->local.num_gpus;
	struct search_node *first;

	search->problem = p;
	search->result = result;
	search->best = -1;
	search->nodes = calloc(levels, sizeof(*search->nodes));
	if (!search->nodes)
		return -ENOMEM;
	prune_init(p, &search->pruning);
	first = &search->nodes[0];
	first->matching.size = num_gpus;
	for (size_t i = 0; i < num_gpus; i++) {
		first->domains[i] = set_of_first(num_gpus);
		if (!set_has(p->wanted, i))
			continue;
		first->domains[i] = p->candidates[i];
		if (p->rules & SEARCH_TOGETHER)
			first->domains[i] &= prune_by_cpu_link(p, i);
		if (p->rules & SEARCH_PARTITIONS)
			first->domains[i] &= p->in->same_partition[i];
		for (size_t j = 0; j < num_gpus; j++)
			search->costs.of[i][j] = WORTH_MAX - prune_worth(p, i, set_of(j));
	}
	return 0;
}

/* Whether an assignment as good as the best gives saved GPU @saved the lower local GPU @local. If
 * so, it becomes the best. */
static bool can_be_lower(struct search *search, size_t saved, size_t local)
{
	int best = search->best;

	search->best = best - 1;
	try_gpu(search, 0, saved, local);
	if (search->best == best)
		return true;
	search->best = best;
	return false;
}

/* Gives @saved the lowest of local GPUs @choices that a best assignment allows. */
static void lower_gpu(struct search *search, size_t saved, uint64_t choices)
{
	set_for_each (i, choices) {
		if (i >= search->result->local_of[saved] || search->given_up)
			return;
		if (can_be_lower(search, saved, i))
			return;
	}
}

/* Gives each saved GPU in turn the lowest local GPU that a best assignment allows. */
static void lower_all(struct search *search)
{
	struct search_node *first = &search->nodes[0];
	uint64_t unused = set_of_first(search->problem->in->local.num_gpus);

	set_for_each (i, search->problem->wanted) {
		uint64_t choices = first->domains[i] & unused;

		if (set_next(choices, 0) < search->result->local_of[i]) {
			(void)prune_all(&search->pruning, first->domains);
			choices = first->domains[i];
		}
		lower_gpu(search, i, choices);
		first->domains[i] = set_of(search->result->local_of[i]);
		unused &= ~first->domains[i];
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
	visit(search, 0);
	if (!search->given_up && search->best >= 0 && !any_will_do)
		lower_all(search);
	result->worth = search->best;
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
