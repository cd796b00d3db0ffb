// SPDX-License-Identifier: GPL-2.0-only
/* Maps pairs of captured machines. A file has the expected outcome, mapping and reason of each. */
#include "host.h"

#include "map/map.h"
#include "pairs.h"

/* The number of pairs in the file: without it a truncated file would pass. */
#define PAIRS 229

/* The search ends after 20,000 attempts. */
#define ATTEMPTS 283

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
	assert_true(answer.attempts <= ATTEMPTS);
	if (answer.agrees)
		return;
	tally->differing++;
	print_message("%s: %s %s%s, expected %s %s%s\n", pair->columns[PAIR_ID], answer.outcome,
		      answer.mapping, answer.reason, pair->columns[PAIR_OUTCOME],
		      pair->columns[PAIR_MAPPING], pair->columns[PAIR_REASON]);
}

UNIT_TEST(each_pair_agrees_with_the_file)
{
	struct tally tally = { 0 };

	assert_int_equal(pairs_for_each(TREES, compare, &tally), PAIRS);
	assert_int_equal(tally.differing, 0);
}

/* With a mapping the log has one line per GPU. Otherwise it has a table, if the machine has GPUs,
 * and one error line with the remedy. */
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
	/* The table and the error line name the property and its option. */
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

UNIT_TEST(the_log_explains_each_answer)
{
	struct tally tally = { 0 };

	assert_int_equal(pairs_for_each(TREES, explain, &tally), PAIRS);
	assert_int_equal(tally.explained, PAIRS);
}
