// SPDX-License-Identifier: GPL-2.0-only
/* Compares the mapper with the oracle on thousands of random machines. */
#include "host.h"

#include "map/map.h"
#include "oracle.h"
#include "pairs.h"
#include "synthetic.h"

#define PAIRS    20000
#define MAX_GPUS 7
/* Two outcomes with a mapping, and five reasons without one. */
#define NUM_ANSWERS 7

static struct map_options random_options(struct dice *dice)
{
	struct map_options options = pair_options();

	options.check_numa = !dice_percent(dice, 20);
	options.check_xgmi = !dice_percent(dice, 20);
	options.check_fw_version = !dice_percent(dice, 10);
	options.check_sdma_fw = !dice_percent(dice, 10);
	options.check_capability = !dice_percent(dice, 10);
	options.check_vram_size = !dice_percent(dice, 10);
	options.check_num_gws = !dice_percent(dice, 10);
	options.check_caches = !dice_percent(dice, 10);
	return options;
}

/* Two random machines seldom have a mapping, so most destinations derive from the source. */
static void random_destination(struct dice *dice, const struct topology *source,
			       struct topology *destination)
{
	struct topology copy;
	size_t gpus = topology_count_gpus(source);

	switch (dice_roll(dice, 4)) {
	case 0:
		machine_random(dice, MAX_GPUS, destination);
		return;
	case 1:
		machine_copy(source, destination);
		return;
	case 2:
		machine_renamed(dice, source, destination);
		return;
	default:
		machine_renamed(dice, source, &copy);
		machine_some(dice, &copy, gpus ? gpus - 1 : 0, destination);
		topology_done(&copy);
	}
}

static void random_source(struct dice *dice, struct topology *ret_source)
{
	_cleanup_(topology_done) struct topology whole = { 0 };
	size_t gpus;

	machine_random(dice, MAX_GPUS, &whole);
	gpus = topology_count_gpus(&whole);
	machine_some(dice, &whole,
		     dice_percent(dice, 70) ? gpus : dice_roll(dice, (uint32_t)gpus + 1),
		     ret_source);
}

/* Changes a few GPUs, so that some pairs just fit and others just do not. */
static void disturb(struct dice *dice, struct topology *topology)
{
	size_t gpus = topology_count_gpus(topology);

	for (uint32_t times = gpus < 2 ? 0 : dice_roll(dice, 4); times; times--) {
		uint32_t a = dice_roll(dice, (uint32_t)gpus), b = dice_roll(dice, (uint32_t)gpus);

		switch (dice_roll(dice, 4)) {
		case 0:
			machine_gpu(topology, a)->fw_version ^= 1;
			break;
		case 1:
			if (a != b)
				machine_lose_link(topology, a, b);
			break;
		default:
			machine_move_gpu(topology, a, b);
		}
	}
}

static void assert_same_answer(const struct topology *source, const struct topology *destination,
			       const struct gpu_map *map, const struct oracle_answer *expected)
{
	char reason[PAIR_REASON_MAX];
	size_t mapped = 0;

	pair_reason(map, reason, sizeof(reason));
	assert_string_equal(pair_outcome(map->outcome), expected->outcome);
	assert_string_equal(reason, expected->words);
	assert_int_equal(map->num_nodes, source->num_nodes);
	for (size_t i = 0; i < map->num_nodes; i++)
		mapped += map->local[i] != NULL;
	assert_int_equal(mapped, expected->num_gpus);
	for (size_t i = 0; i < expected->num_gpus; i++)
		assert_ptr_equal(map->local[expected->source[i] - source->nodes],
				 expected->destination[i]);
	if (map->outcome <= MAP_MAPPED_WARNING)
		assert_int_equal(map->num_extra + mapped, topology_count_gpus(destination));
}

static void note(const char *answer, const char **seen, size_t *counts)
{
	char first[32];
	size_t i;

	(void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(answer, ": "), answer);
	for (i = 0; seen[i] && strcmp(seen[i], first); i++)
		;
	assert_true(i < NUM_ANSWERS);
	if (!seen[i])
		seen[i] = strdup(first);
	counts[i]++;
}

UNIT_TEST(the_mapper_agrees_with_the_oracle)
{
	const char *seen[NUM_ANSWERS + 1] = { 0 };
	size_t counts[NUM_ANSWERS] = { 0 };

	for (uint64_t seed = 1; seed <= PAIRS; seed++) {
		struct dice dice = { seed * 1000003 };
		struct map_options options = random_options(&dice);
		_cleanup_(topology_done) struct topology source = { 0 }, destination = { 0 };
		struct oracle_answer expected;
		_cleanup_(map_done) struct gpu_map map = { 0 };

		/* The runner shows the last line of a failed test. */
		print_message("case %llu\n", (unsigned long long)seed);
		random_source(&dice, &source);
		random_destination(&dice, &source, &destination);
		disturb(&dice, &destination);
		if (dice_percent(&dice, 50))
			machine_take_ids(&dice, &destination, 80, &source);
		oracle_ask(&source, &destination, &options, &expected);
		assert_int_equal(map_decide(&source, &destination, &options, &map), 0);
		assert_same_answer(&source, &destination, &map, &expected);
		note(*expected.words ? expected.words : expected.outcome, seen, counts);
	}
	/* Each answer must occur, or the test proves nothing about it. */
	for (size_t i = 0; i < NUM_ANSWERS; i++) {
		assert_non_null(seen[i]);
		print_message("%zu of %d: %s\n", counts[i], PAIRS, seen[i]);
		assert_true(counts[i] >= 20);
		free((void *)seen[i]);
	}
}
