// SPDX-License-Identifier: GPL-2.0-only
#include "storage/trial.h"

/* The turns of each way. */
#define ROUNDS 2u
/* Operations on fewer bytes do not count. */
#define LEAST_BYTES (64u << 10)

void trial_init(struct trial *trial, bool useful, unsigned int operations)
{
	*trial = (struct trial){ .useful = useful, .operations = operations };
	(void)pthread_mutex_init(&trial->lock, NULL);
}

void trial_done(struct trial *trial)
{
	(void)pthread_mutex_destroy(&trial->lock);
}

static double seconds_per_byte(const struct trial *trial, unsigned int way)
{
	return trial->bytes[way] ? trial->seconds[way] / (double)trial->bytes[way] : 0;
}

unsigned int trial_choose(struct trial *trial, uint64_t size)
{
	unsigned int way;

	if (!trial->useful || size < LEAST_BYTES)
		return 0;
	(void)pthread_mutex_lock(&trial->lock);
	if (trial->begun < trial->operations * ROUNDS * TRIAL_WAYS)
		way = trial->begun++ / trial->operations % TRIAL_WAYS;
	else
		way = seconds_per_byte(trial, 1) < seconds_per_byte(trial, 0);
	(void)pthread_mutex_unlock(&trial->lock);
	return way;
}

void trial_note(struct trial *trial, unsigned int way, double seconds, uint64_t size)
{
	if (size < LEAST_BYTES)
		return;
	(void)pthread_mutex_lock(&trial->lock);
	trial->seconds[way] += seconds;
	trial->bytes[way] += size;
	(void)pthread_mutex_unlock(&trial->lock);
}
