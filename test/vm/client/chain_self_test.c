/* SPDX-License-Identifier: GPL-2.0-only */
/* Shows that the chain notices what it is there to notice: packets that are left out or executed
 * again. It runs natively, with the model in the place of the engine. */
#include "chain_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSES_BEFORE  200
#define PACKETS        (2 * CHAIN_CELLS)
#define LONGEST_REWIND 24

/* One pass: how it began, its steps, how it must end. */
struct trial {
	struct chain_model model;
	struct chain_state begin;
	struct chain_step steps[CHAIN_CELLS];
	struct chain_state device;
};

struct tally {
	unsigned int noticed;
	unsigned int harmless;
	unsigned int missed;
};

static void trial_execute(struct trial *trial, unsigned int packet)
{
	const struct chain_step *step = &trial->steps[packet / 2];

	if (packet % 2 == 0)
		chain_apply_data(&trial->device, trial->model.tape, step);
	else
		chain_apply_slot(&trial->device, step);
}

static bool trial_differs(const struct trial *trial)
{
	return memcmp(&trial->device, &trial->model.state, sizeof(trial->device)) != 0;
}

static bool trial_skip(struct trial *trial, unsigned int skipped)
{
	trial->device = trial->begin;
	for (unsigned int packet = 0; packet < PACKETS; packet++) {
		if (packet != skipped)
			trial_execute(trial, packet);
	}
	return trial_differs(trial);
}

/* After packet @last the engine goes back and executes the last @count packets once more. */
static bool trial_rewind(struct trial *trial, unsigned int last, unsigned int count)
{
	trial->device = trial->begin;
	for (unsigned int packet = 0; packet < PACKETS; packet++) {
		trial_execute(trial, packet);
		if (packet != last)
			continue;
		for (unsigned int again = last + 1 - count; again <= last; again++)
			trial_execute(trial, again);
	}
	return trial_differs(trial);
}

/* Packets that copy from another buffer or fill have the same result if they run twice in a row, so
 * a repetition cannot be seen and does no harm. A range with any other packet must show. */
static bool trial_rewind_must_show(const struct trial *trial, unsigned int last, unsigned int count)
{
	for (unsigned int packet = last + 1 - count; packet <= last; packet++) {
		if (packet % 2 || !chain_kind_is_repeatable(trial->steps[packet / 2].kind))
			return true;
	}
	return false;
}

static void tally_add(struct tally *tally, bool noticed, bool must)
{
	if (noticed)
		tally->noticed++;
	else if (must)
		tally->missed++;
	else
		tally->harmless++;
}

static void trial_pass(struct trial *trial, struct tally *skips, struct tally *rewinds)
{
	trial->begin = trial->model.state;
	for (unsigned int i = 0; i < CHAIN_CELLS; i++)
		chain_model_next(&trial->model, &trial->steps[i]);

	for (unsigned int packet = 0; packet < PACKETS; packet++) {
		tally_add(skips, trial_skip(trial, packet), true);
		for (unsigned int count = 1; count <= LONGEST_REWIND && count <= packet + 1;
		     count += count < 4 ? 1 : 4)
			tally_add(rewinds, trial_rewind(trial, packet, count),
				  trial_rewind_must_show(trial, packet, count));
	}
}

static int tally_print(const char *what, const struct tally *tally)
{
	printf("%s: %u noticed, %u without effect, %u missed\n", what, tally->noticed,
	       tally->harmless, tally->missed);
	return tally->missed == 0 && tally->noticed > 0 ? 0 : -EILSEQ;
}

int chain_self_test(void)
{
	struct tally skips = { 0 }, rewinds = { 0 };
	struct trial *trial = calloc(1, sizeof(*trial));
	struct chain_step step;
	int ret, ret2;

	if (!trial)
		return -ENOMEM;
	chain_model_init(&trial->model, 1);
	trial_pass(trial, &skips, &rewinds);
	/* Later, when the table has forgotten how it began. */
	for (unsigned int i = 0; i < PASSES_BEFORE * CHAIN_CELLS; i++)
		chain_model_next(&trial->model, &step);
	trial_pass(trial, &skips, &rewinds);
	free(trial);

	ret = tally_print("a packet left out", &skips);
	ret2 = tally_print("the last packets repeated", &rewinds);
	return ret < 0 ? ret : ret2;
}
