// SPDX-License-Identifier: GPL-2.0-only
/* Tests how a trial chooses between two ways. */
#include "host.h"

#include "storage/trial.h"

#define BYTES (1u << 20)
/* Operations that a trial has at most. */
#define MANY 64

/* Runs @count operations that take these seconds each, and returns how many used the second way. */
static unsigned int run(struct trial *trial, unsigned int count, const double seconds[TRIAL_WAYS],
			uint64_t size)
{
	unsigned int second = 0;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int way = trial_choose(trial, size);

		assert_true(way < TRIAL_WAYS);
		trial_note(trial, way, seconds[way], size);
		second += way;
	}
	return second;
}

UNIT_TEST(the_faster_way_wins)
{
	static const double cases[][TRIAL_WAYS] = { { 2, 1 }, { 1, 2 } };

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct trial trial;
		unsigned int tried;

		trial_init(&trial, true, 8);
		tried = run(&trial, MANY, cases[i], BYTES);
		assert_in_range(tried, 1, MANY - 1);
		assert_int_equal(run(&trial, MANY, cases[i], BYTES), i ? 0 : MANY);
		trial_done(&trial);
	}
}

UNIT_TEST(few_bytes_do_not_count)
{
	struct trial trial;

	trial_init(&trial, true, 8);
	assert_int_equal(run(&trial, MANY, (const double[]){ 2, 1 }, 4096), 0);
	assert_int_equal(trial.begun, 0);
	assert_int_equal(trial.bytes[0], 0);
	trial_done(&trial);
}

UNIT_TEST(without_use_the_first_way_is_taken)
{
	struct trial trial;

	trial_init(&trial, false, 8);
	assert_int_equal(run(&trial, MANY, (const double[]){ 2, 1 }, BYTES), 0);
	trial_done(&trial);
}
