// SPDX-License-Identifier: GPL-2.0-only
/* The search on machines too large for the oracle: it finds a mapping that exists, the mapping
 * keeps the rules, and the search needs few attempts. Also the matching. */
#include "host.h"

#include "map/map.h"
#include "map/matching.h"
#include "map/search.h"
#include "pairs.h"
#include "synthetic.h"

/* Enough for machines that are not made to be hard, and far below the limit. */
#define FEW_ATTEMPTS 1000

static bool lists_xgmi(const struct topology_node *from, const struct topology_node *to)
{
	for (size_t i = 0; i < from->num_links; i++) {
		if (from->links[i].type == LINK_XGMI && from->links[i].node_to == to->node_id)
			return true;
	}
	return false;
}

/* Each GPU of these machines has one CPU link. */
static const struct topology_node *cpu_of(const struct topology *topology,
					  const struct topology_node *gpu)
{
	for (size_t i = 0; i < gpu->num_links; i++) {
		const struct topology_node *to =
			topology_find_node(topology, gpu->links[i].node_to);

		if (to && !to->gpu_id)
			return to;
	}
	return NULL;
}

static void assert_keeps_rules(const struct topology *saved, const struct topology *local,
			       const struct gpu_map *map)
{
	for (size_t i = 0; i < saved->num_nodes; i++) {
		const struct topology_node *a = &saved->nodes[i], *to_a = map->local[i];

		assert_int_equal(a->gpu_id != 0, to_a != NULL);
		if (!to_a)
			continue;
		assert_true(a->fw_version <= to_a->fw_version);
		for (size_t j = 0; j < i; j++) {
			const struct topology_node *b = &saved->nodes[j], *to_b = map->local[j];

			if (!to_b)
				continue;
			assert_ptr_not_equal(to_a, to_b);
			if (lists_xgmi(a, b) || lists_xgmi(b, a))
				assert_true(lists_xgmi(to_a, to_b) || lists_xgmi(to_b, to_a));
			if (cpu_of(saved, a) == cpu_of(saved, b))
				assert_ptr_equal(cpu_of(local, to_a), cpu_of(local, to_b));
			else if (map->outcome == MAP_MAPPED)
				assert_ptr_not_equal(cpu_of(local, to_a), cpu_of(local, to_b));
		}
	}
}

/* Gives each GPU and its copy the same random firmware version: few mappings remain, but at least
 * one. */
static void mark_gpus(struct dice *dice, struct topology *from, struct topology *to)
{
	for (size_t i = 0; i < topology_count_gpus(from); i++) {
		struct topology_node *node = machine_gpu(from, i);

		node->fw_version += dice_roll(dice, 3);
		/* The copy has the same order of nodes. */
		to->nodes[node - from->nodes].fw_version = node->fw_version;
	}
}

UNIT_TEST(a_mapping_is_found_on_machines_of_any_shape)
{
	static const struct {
		size_t num_hives, size, num_cpus;
		bool striped;
	} shapes[] = {
		{ 1, 64, 2, true },  { 1, 64, 8, true },  { 16, 4, 1, false },
		{ 16, 4, 8, false }, { 8, 8, 4, true },   { 4, 4, 2, false },
		{ 3, 5, 3, true },   { 64, 1, 4, false }, { 5, 7, 5, false },
	};

	for (uint64_t seed = 0; seed < 5 * ARRAY_SIZE(shapes); seed++) {
		size_t shape = seed % ARRAY_SIZE(shapes);
		struct map_options options = pair_options();
		_cleanup_(topology_done) struct topology saved = { 0 }, copy = { 0 }, local = { 0 };
		struct dice dice = { seed };
		_cleanup_(map_done) struct gpu_map map = { 0 };

		print_message("case %llu\n", (unsigned long long)seed);
		machine_of_hives(shapes[shape].num_hives, shapes[shape].size,
				 shapes[shape].num_cpus, shapes[shape].striped, &saved);
		machine_copy(&saved, &copy);
		mark_gpus(&dice, &saved, &copy);
		machine_renamed(&dice, &copy, &local);
		assert_int_equal(map_decide(&saved, &local, &options, &map), 0);
		assert_int_equal(map.outcome, MAP_MAPPED);
		assert_keeps_rules(&saved, &local, &map);
		assert_true(map.attempts <= FEW_ATTEMPTS);
	}
}

/* A process with some GPUs of a machine moves to a machine of the same model. */
UNIT_TEST(some_gpus_map_to_another_machine)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct map_options options = pair_options();
		_cleanup_(topology_done) struct topology whole = { 0 }, saved = { 0 },
							 local = { 0 };
		struct dice dice = { seed };
		_cleanup_(map_done) struct gpu_map map = { 0 };

		machine_of_hives(8, 8, 2 + seed % 3, seed % 2, &whole);
		machine_some(&dice, &whole, 1 + dice_roll(&dice, 64), &saved);
		machine_renamed(&dice, &whole, &local);
		assert_int_equal(map_decide(&saved, &local, &options, &map), 0);
		assert_int_equal(map.outcome, MAP_MAPPED);
		assert_keeps_rules(&saved, &local, &map);
		assert_int_equal(map.num_extra + topology_count_gpus(&saved), 64);
		assert_true(map.attempts <= FEW_ATTEMPTS);
	}
}

static void assert_refused_fast(const struct topology *saved, const struct topology *local,
				const char *words)
{
	struct map_options options = pair_options();
	char reason[PAIR_REASON_MAX];
	_cleanup_(map_done) struct gpu_map map = { 0 };

	assert_int_equal(map_decide(saved, local, &options, &map), 0);
	pair_reason(&map, reason, sizeof(reason));
	assert_string_equal(reason, words);
	assert_true(map.attempts <= FEW_ATTEMPTS);
}

UNIT_TEST(a_machine_without_mapping_is_refused_fast)
{
	struct topology saved, local, other;
	struct dice dice = { 5 };

	for (size_t hives = 4; hives <= 16; hives *= 4) {
		/* No GPU fits the last one. */
		machine_of_hives(hives, 4, 1, false, &saved);
		machine_renamed(&dice, &saved, &local);
		machine_gpu(&saved, hives * 4 - 1)->wave_front_size = 32;
		assert_refused_fast(&saved, &local,
				    hives == 4 ? "no-candidate:wave_front_size 10f"
					       : "no-candidate:wave_front_size 13f");
		/* Only a GPU without links fits the last one. */
		machine_gpu(&saved, hives * 4 - 1)->wave_front_size = 0;
		machine_gpu(&saved, hives * 4 - 1)->fw_version++;
		machine_gpu(&local, 0)->fw_version++;
		for (size_t i = 1; i < hives * 4; i++)
			machine_lose_link(&local, 0, i);
		assert_refused_fast(&saved, &local, "links");
		topology_done(&saved);
		topology_done(&local);
	}
	/* Five hives of three GPUs do not fit two hives of eight without a split. */
	machine_of_hives(5, 3, 1, false, &saved);
	machine_of_hives(2, 8, 1, false, &other);
	machine_renamed(&dice, &other, &local);
	assert_refused_fast(&saved, &local, "links");
	topology_done(&saved);
	topology_done(&other);
	topology_done(&local);
	/* The same with CPU nodes. */
	machine_of_hives(15, 1, 5, true, &saved);
	machine_of_hives(16, 1, 2, true, &other);
	machine_renamed(&dice, &other, &local);
	assert_refused_fast(&saved, &local, "numa");
	topology_done(&saved);
	topology_done(&other);
	topology_done(&local);
}

/* Random links without a quick answer: the search stops at its limit. */
UNIT_TEST(the_search_stops_at_its_limit)
{
	struct map_options options = pair_options();
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };
	struct dice dice = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };

	machine_of_hives(1, 24, 1, false, &saved);
	machine_of_hives(1, 40, 1, false, &local);
	for (size_t i = 0; i < 24 * 24; i++) {
		if (i / 24 < i % 24 && dice_percent(&dice, 50))
			machine_lose_link(&saved, i / 24, i % 24);
	}
	for (size_t i = 0; i < 40 * 40; i++) {
		if (i / 40 < i % 40 && dice_percent(&dice, 40))
			machine_lose_link(&local, i / 40, i % 40);
	}
	assert_int_equal(map_decide(&saved, &local, &options, &map), 0);
	assert_int_equal(map.reason, REASON_UNDECIDED);
	assert_int_equal(map.attempts, SEARCH_ATTEMPTS_MAX + 1);
}

/* The cost of the cheapest assignment of up to seven rows, by trying each. -1: none exists. */
static int cheapest(size_t size, size_t row, const uint64_t *allowed, const struct costs *costs,
		    unsigned int taken)
{
	int best = -1;

	if (row == size)
		return 0;
	for (size_t i = 0; i < size; i++) {
		int rest;

		if (taken >> i & 1 || !set_has(allowed[row], i))
			continue;
		rest = cheapest(size, row + 1, allowed, costs, taken | 1u << i);
		if (rest >= 0 && (best < 0 || rest + costs->of[row][i] < best))
			best = rest + costs->of[row][i];
	}
	return best;
}

static int cost_of(const struct matching *matching, const uint64_t *allowed,
		   const struct costs *costs)
{
	uint64_t used = 0;
	int cost = 0;

	for (size_t i = 0; i < matching->size; i++) {
		size_t column = matching->column_of[i] - 1u;

		assert_true(set_has(allowed[i], column));
		assert_false(set_has(used, column));
		assert_int_equal(matching->row_of[column], i + 1);
		used |= set_of(column);
		cost += costs->of[i][column];
	}
	return cost;
}

UNIT_TEST(the_matching_stays_the_cheapest_as_choices_disappear)
{
	static struct costs costs;

	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct dice dice = { seed };
		struct matching matching = { .size = 1 + dice_roll(&dice, 6) };
		uint64_t allowed[8];
		bool ended = false;

		for (size_t i = 0; i < matching.size; i++) {
			allowed[i] = set_of_first(matching.size);
			for (size_t j = 0; j < matching.size; j++)
				costs.of[i][j] = (uint16_t)dice_roll(&dice, 5);
		}
		while (!ended) {
			int expected = cheapest(matching.size, 0, allowed, &costs, 0);

			ended = !matching_update(&matching, allowed, &costs);
			assert_int_equal(ended, expected < 0);
			assert_int_equal(ended, !matching_exists(allowed, matching.size));
			if (!ended)
				assert_int_equal(cost_of(&matching, allowed, &costs), expected);
			for (int gone = 1 + (int)dice_roll(&dice, 3); gone; gone--)
				allowed[dice_roll(&dice, (uint32_t)matching.size)] &=
					~set_of(dice_roll(&dice, (uint32_t)matching.size));
		}
	}
}

UNIT_TEST(more_than_64_gpus_are_refused)
{
	const struct map_options options = pair_options();
	_cleanup_(topology_done) struct topology many = { 0 }, few = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };

	machine_of_hives(1, 65, 1, false, &many);
	machine_of_hives(1, 2, 1, false, &few);
	assert_int_equal(map_decide(&few, &many, &options, &map), 0);
	assert_int_equal(map.reason, REASON_TOO_MANY);
	map_done(&map);
	assert_int_equal(map_decide(&many, &few, &options, &map), 0);
	assert_int_equal(map.reason, REASON_TOO_MANY);
	assert_int_equal(pair_explain(&few, &many, &options), -ENODEV);
	assert_logged("Error (amdgpu_plugin): ", "more than 64 GPUs");
}
