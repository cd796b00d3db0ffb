// SPDX-License-Identifier: GPL-2.0-only
/* Prunes domains by the rules between GPUs, without trying an assignment. For an assignment that
 * keeps all rules call search_best(). */
#include "map/prune.h"

#include "map/gpu_rules.h"

uint64_t prune_by_cpu_link(const struct search_problem *p, size_t saved)
{
	uint64_t fit = 0;

	for (size_t i = 0; i < p->in->local.num_gpus; i++) {
		if (gpu_rules_cpu_link_serves(p->in, saved, i))
			fit |= set_of(i);
	}
	return fit;
}

/* false: the domain is empty now. */
static bool keep_only(uint64_t *domain, uint64_t allowed, bool *changed)
{
	if (*domain & ~allowed) {
		*domain &= allowed;
		*changed = true;
	}
	return *domain != 0;
}

/* A local GPU that is the whole domain of a saved GPU leaves the other domains. */
static bool prune_taken(const struct search_problem *p, uint64_t *domains, bool *changed)
{
	uint64_t taken = 0;

	set_for_each (i, p->wanted) {
		if (!domains[i])
			return false;
		if (set_count(domains[i]) > 1)
			continue;
		if (taken & domains[i])
			return false;
		taken |= domains[i];
	}
	set_for_each (i, p->wanted) {
		if (set_count(domains[i]) > 1 && !keep_only(&domains[i], ~taken, changed))
			return false;
	}
	return true;
}

/* Whether all @peers find a GPU of their own among @local_peers. */
static bool peers_have_room(const uint64_t *domains, uint64_t peers, uint64_t local_peers)
{
	uint64_t sets[GPU_SET_MAX];
	size_t count = 0;

	set_for_each (i, peers)
		sets[count++] = domains[i] & local_peers;
	return matching_exists(sets, count);
}

/* Removes from the domain of saved GPU @i local GPUs without a peer for each of its @peers. */
static bool prune_lonely(const struct pruning *pruning, const struct peer_rule *rule,
			 uint64_t *domains, size_t i, bool *changed)
{
	uint64_t peers = rule->saved[i] & pruning->problem->wanted, pool = 0, fit = 0;

	set_for_each (peer, peers)
		pool |= domains[peer];
	set_for_each (j, domains[i]) {
		if (set_count(rule->local[j] & pool) < set_count(peers))
			continue;
		if (!pruning->thorough || peers_have_room(domains, peers, rule->local[j]))
			fit |= set_of(j);
	}
	return keep_only(&domains[i], fit, changed);
}

/* A peer of saved GPU @i can only move to a peer of a GPU of the domain of @i. */
static bool prune_by_peers(const struct pruning *pruning, const struct peer_rule *rule,
			   uint64_t *domains, size_t i, bool *changed)
{
	uint64_t peers = rule->saved[i] & pruning->problem->wanted, reach = 0;

	if (!peers)
		return true;
	set_for_each (j, domains[i])
		reach |= rule->local[j];
	set_for_each (peer, peers) {
		if (!keep_only(&domains[peer], reach, changed))
			return false;
	}
	return prune_lonely(pruning, rule, domains, i, changed);
}

static bool prune_by_peer_rule(const struct pruning *pruning, const struct peer_rule *rule,
			       uint64_t *domains, bool *changed)
{
	set_for_each (i, pruning->problem->wanted) {
		if (!prune_by_peers(pruning, rule, domains, i, changed))
			return false;
	}
	return true;
}

static bool group_has_room(const struct group_rule *rule, const uint64_t *domains, size_t group,
			   size_t to)
{
	uint64_t sets[GPU_SET_MAX];
	size_t count = 0;

	set_for_each (i, rule->saved.members[group]) {
		sets[count] = domains[i] & rule->local.members[to];
		if (!sets[count++])
			return false;
	}
	return matching_exists(sets, count);
}

uint64_t prune_groups_for(const struct group_rule *rule, const uint64_t *domains, size_t group)
{
	uint64_t groups = 0;

	for (size_t i = 0; i < rule->local.count; i++) {
		if (group_has_room(rule, domains, group, i))
			groups |= set_of(i);
	}
	return groups;
}

/* Prunes the domains of @group to the GPUs of @local_groups. */
static bool prune_group(const struct group_rule *rule, uint64_t *domains, size_t group,
			uint64_t local_groups, bool *changed)
{
	uint64_t allowed = 0;

	set_for_each (i, local_groups)
		allowed |= rule->local.members[i];
	set_for_each (i, rule->saved.members[group]) {
		if (!keep_only(&domains[i], allowed, changed))
			return false;
	}
	return true;
}

/* Prunes local group @taken from the domains of all groups but @group. */
static bool prune_other_groups(const struct group_rule *rule, uint64_t *domains, size_t group,
			       size_t taken, bool *changed)
{
	for (size_t other = 0; other < rule->saved.count; other++) {
		if (other == group)
			continue;
		set_for_each (i, rule->saved.members[other]) {
			if (!keep_only(&domains[i], ~rule->local.members[taken], changed))
				return false;
		}
	}
	return true;
}

static bool prune_by_groups(const struct group_rule *rule, uint64_t *domains, bool *changed)
{
	uint64_t groups[GPU_SET_MAX];

	for (size_t i = 0; i < rule->saved.count; i++) {
		groups[i] = prune_groups_for(rule, domains, i);
		if (!prune_group(rule, domains, i, groups[i], changed))
			return false;
		if (rule->apart && set_count(groups[i]) == 1 &&
		    !prune_other_groups(rule, domains, i, set_next(groups[i], 0), changed))
			return false;
	}
	return !rule->apart || matching_exists(groups, rule->saved.count);
}

static bool prune_once(const struct pruning *pruning, uint64_t *domains, bool *changed)
{
	const struct search_problem *p = pruning->problem;

	if (!prune_taken(p, domains, changed))
		return false;
	for (size_t i = 0; i < pruning->num_peer_rules; i++) {
		if (!prune_by_peer_rule(pruning, &pruning->peer_rules[i], domains, changed))
			return false;
	}
	for (size_t i = 0; i < pruning->num_rules; i++) {
		if (!prune_by_groups(&pruning->rules[i], domains, changed))
			return false;
	}
	return true;
}

bool prune_all(const struct pruning *pruning, uint64_t *domains)
{
	bool changed;

	do {
		changed = false;
		if (!prune_once(pruning, domains, &changed))
			return false;
	} while (changed);
	return true;
}

/* Whether any two saved groups have more GPUs than the largest local group. */
static bool no_two_fit(const struct group_rule *rule)
{
	size_t least = GPU_SET_MAX, second = GPU_SET_MAX, most = 0;

	for (size_t i = 0; i < rule->saved.count; i++) {
		size_t size = set_count(rule->saved.members[i]);

		second = size < least ? least : size < second ? size : second;
		least = size < least ? size : least;
	}
	for (size_t i = 0; i < rule->local.count; i++) {
		size_t size = set_count(rule->local.members[i]);

		most = size > most ? size : most;
	}
	return rule->saved.count > 1 && least + second > most;
}

static void add_peer_rule(struct pruning *pruning, const uint64_t *saved, const uint64_t *local)
{
	pruning->peer_rules[pruning->num_peer_rules++] = (struct peer_rule){ saved, local };
}

static void add_peer_rules(const struct search_problem *p, struct pruning *pruning)
{
	const struct map_input *in = p->in;

	pruning->num_peer_rules = 0;
	if (p->rules & SEARCH_LINKS)
		add_peer_rule(pruning, in->saved.xgmi, in->local.xgmi);
	if (p->rules & SEARCH_SIBLINGS)
		add_peer_rule(pruning, in->saved.siblings, in->local.siblings);
	add_peer_rule(pruning, in->sharing_siblings, in->local.siblings);
	add_peer_rule(pruning, in->sharing_strangers, in->local.strangers);
}

void prune_init(const struct search_problem *p, struct pruning *ret_pruning)
{
	const struct link_graph *saved = &p->in->saved, *local = &p->in->local;
	uint64_t all = set_of_first(local->num_gpus);

	ret_pruning->problem = p;
	ret_pruning->num_rules = 0;
	ret_pruning->thorough = false;
	add_peer_rules(p, ret_pruning);
	if (p->rules & SEARCH_LINKS) {
		struct group_rule *hives = &ret_pruning->rules[ret_pruning->num_rules++];

		links_hives(saved, p->wanted, &hives->saved);
		links_hives(local, all, &hives->local);
		hives->apart = no_two_fit(hives);
	}
	if (p->rules & SEARCH_TOGETHER) {
		struct group_rule *numa = &ret_pruning->rules[ret_pruning->num_rules++];

		links_numa_groups(saved, p->wanted, &numa->saved);
		links_numa_groups(local, all, &numa->local);
		numa->apart = p->rules & SEARCH_APART;
	}
}

int prune_worth(const struct search_problem *p, size_t saved, uint64_t locals)
{
	uint64_t device = p->in->same_device[saved] & locals, id = p->in->same_id[saved] & locals;

	if (device & id)
		return WORTH_MAX;
	return device ? WORTH_SAME_DEVICE : id ? WORTH_SAME_ID : 0;
}

/* Finds what each local group is worth to saved group @group. Returns the most. */
static int find_worth(const struct group_rule *rule, const struct search_problem *p,
		      const uint64_t *domains, size_t group, uint16_t *worth)
{
	int most = 0;

	for (size_t to = 0; to < rule->local.count; to++) {
		worth[to] = 0;
		set_for_each (i, rule->saved.members[group])
			worth[to] += prune_worth(p, i, rule->local.members[to] & domains[i]);
		most = worth[to] > most ? worth[to] : most;
	}
	return most;
}

/* The largest sum if each saved group moves to a local group of its own. */
static int bound_apart(struct bound_buffer *buffer, const struct group_rule *rule)
{
	uint64_t allowed[GPU_SET_MAX];
	struct matching matching = { .size = rule->local.count };
	int worth = 0;

	for (size_t i = 0; i < rule->local.count; i++) {
		allowed[i] = set_of_first(rule->local.count);
		for (size_t j = 0; j < rule->local.count; j++)
			buffer->costs.of[i][j] = i < rule->saved.count ? GPU_SET_MAX * WORTH_MAX -
										 buffer->worth[i][j]
								       : 0;
	}
	(void)matching_update(&matching, allowed, &buffer->costs);
	for (size_t i = 0; i < rule->saved.count; i++)
		worth += buffer->worth[i][matching.column_of[i] - 1u];
	return worth;
}

int prune_bound(struct bound_buffer *buffer, const struct group_rule *rule,
		const struct search_problem *p, const uint64_t *domains)
{
	int ungrouped = 0, worth = 0;

	set_for_each (i, p->wanted) {
		if (rule->saved.of[i] == NO_GROUP)
			ungrouped += prune_worth(p, i, domains[i]);
	}
	for (size_t i = 0; i < rule->saved.count; i++)
		worth += find_worth(rule, p, domains, i, buffer->worth[i]);
	if (worth && rule->apart && rule->saved.count <= rule->local.count) {
		int apart = bound_apart(buffer, rule);

		worth = apart < worth ? apart : worth;
	}
	return ungrouped + worth;
}
