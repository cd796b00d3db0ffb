// SPDX-License-Identifier: GPL-2.0-only
/* The mapper on pairs of captured machines: outcome, map and reason of each are given in a file. */
#include "host.h"

#include <stdio.h>
#include <string.h>

#include "map/map.h"
#include "pairs.h"

/* Of the file as it is in the tree: a file cut short would agree too. */
#define PAIRS 215

struct tally {
	unsigned int differing;
	unsigned int explained;
};

static void compare(struct pair *pair, void *argument)
{
	struct tally *tally = argument;
	struct answer answer;

	unit_forget_lines();
	pair_answer(pair, &answer);
	if (answer.agrees)
		return;
	tally->differing++;
	print_message("%s: %s %s%s, expected %s %s%s\n", pair->columns[PAIR_ID], answer.outcome,
		      answer.mapping, answer.reason, pair->columns[PAIR_OUTCOME],
		      pair->columns[PAIR_MAPPING], pair->columns[PAIR_REASON]);
}

static void every_pair_agrees(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	assert_int_equal(pairs_for_each(TREES, compare, &tally), PAIRS);
	assert_int_equal(tally.differing, 0);
}

/* In words: a line for each GPU that is mapped; for others a table, if there is anything to put
 * into it, and one closing line that says what is needed. */
static void explain(struct pair *pair, void *argument)
{
	struct tally *tally = argument;
	size_t gpus = topology_count_gpus(&pair->source);
	const char *outcome = pair->columns[PAIR_OUTCOME];
	bool refused;

	print_message("case %s\n", pair->columns[PAIR_ID]);
	unit_forget_lines();
	refused = pair_explain(&pair->source, &pair->destination, &pair->options) < 0;
	assert_int_equal(refused, !strcmp(outcome, "refused") || !strcmp(outcome, "malformed"));
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), refused);
	assert_int_equal(unit_count_lines("map: saved GPU 0x"), refused ? 0 : gpus);
	assert_int_equal(unit_logged("Warn  (amdgpu_plugin): ", "now share CPU node", NULL),
			 !strcmp(outcome, "mapped-warning"));
	if (!strcmp(outcome, "refused"))
		assert_logged("Error (amdgpu_plugin): ", "needed: ");
	if (!strcmp(outcome, "refused") && topology_count_gpus(&pair->destination))
		assert_logged("Warn  (amdgpu_plugin): ", "| saved GPU | present GPU |");
	/* The property and its switch, in the table and in the closing line. */
	if (!strncmp(pair->columns[PAIR_REASON], "no-candidate:", 13)) {
		char property[64];

		(void)sscanf(pair->columns[PAIR_REASON] + 13, "%63s", property);
		assert_logged("Error (amdgpu_plugin): ", property);
		assert_logged("Warn  (amdgpu_plugin): ", property, " saved, ", " present");
		assert_int_equal(
			unit_logged("Error (amdgpu_plugin): ", "_CHECK=0 relaxes", NULL),
			unit_logged("Warn  (amdgpu_plugin): ", property, "_CHECK=0 |", NULL));
	}
	tally->explained++;
}

static void every_answer_is_explained(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	assert_int_equal(pairs_for_each(TREES, explain, &tally), PAIRS);
	assert_int_equal(tally.explained, PAIRS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(every_pair_agrees),
		UNIT_TEST(every_answer_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
