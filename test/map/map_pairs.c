// SPDX-License-Identifier: GPL-2.0-only
/* map-pairs [-v] DIR: asks the mapper about each pair of DIR/pairs.tsv and prints whether it agrees
 * with the file. -v adds what the plugin would say in CRIU's log. */
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "map/map.h"
#include "pairs.h"

struct tally {
	bool aloud;
	unsigned int differing;
};

static void say(const struct pair *pair)
{
	host_log_up_to(3);
	(void)pair_explain(&pair->source, &pair->destination, &pair->options);
	host_log_up_to(0);
}

static void take(struct pair *pair, void *argument)
{
	struct tally *tally = argument;
	struct answer answer;

	pair_answer(pair, &answer);
	printf("%s %s %s %s%s\n", pair->columns[PAIR_ID], answer.agrees ? "agree" : "differ",
	       answer.outcome, answer.mapping, answer.reason);
	if (tally->aloud)
		say(pair);
	if (answer.agrees)
		return;
	tally->differing++;
	printf("%s expected %s %s%s (%s -> %s: %s)\n", pair->columns[PAIR_ID],
	       pair->columns[PAIR_OUTCOME], pair->columns[PAIR_MAPPING], pair->columns[PAIR_REASON],
	       pair->columns[PAIR_SOURCE], pair->columns[PAIR_DESTINATION],
	       pair->columns[PAIR_CASE]);
}

int main(int argc, char **argv)
{
	struct tally tally = { 0 };
	int count;

	if (argc > 2 && !strcmp(argv[1], "-v")) {
		tally.aloud = true;
		argc--;
		argv++;
	}
	if (argc != 2) {
		fprintf(stderr, "usage: map-pairs [-v] DIR\n");
		return 2;
	}
	count = pairs_for_each(argv[1], take, &tally);
	if (count < 0)
		return 2;
	printf("%d pairs, %u differ\n", count, tally.differing);
	return tally.differing ? 1 : 0;
}
