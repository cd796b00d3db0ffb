// SPDX-License-Identifier: GPL-2.0-only
/* map-pairs [-v] DIR: maps each pair of DIR/pairs.tsv and prints whether the result agrees with the
 * file. -v adds the lines that the plugin writes to CRIU's log. */
#include <stdio.h>
#include <string.h>

#include "criu_stub.h"
#include "map/map.h"
#include "pairs.h"

struct tally {
	bool verbose;
	unsigned int differing;
};

/* Among the results, in order. */
static void print_line(unsigned int level, const char *line)
{
	(void)level;
	(void)fputs(line, stdout);
}

static void print_log(const struct pair *pair)
{
	criu_stub.log_level = 3;
	(void)pair_explain(&pair->source, &pair->destination, &pair->options);
	criu_stub.log_level = 0;
}

static void map_pair(struct pair *pair, void *argument)
{
	struct tally *tally = argument;
	struct answer answer;

	pair_answer(pair, &answer);
	printf("%s %s %s %s%s\n", pair->columns[PAIR_ID], answer.agrees ? "agree" : "differ",
	       answer.outcome, answer.mapping, answer.reason);
	if (tally->verbose)
		print_log(pair);
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

	criu_stub.log_level = 0;
	criu_stub.print = print_line;
	if (argc > 2 && !strcmp(argv[1], "-v")) {
		tally.verbose = true;
		argc--;
		argv++;
	}
	if (argc != 2) {
		fprintf(stderr, "usage: map-pairs [-v] DIR\n");
		return 2;
	}
	count = pairs_for_each(argv[1], map_pair, &tally);
	if (count < 0)
		return 2;
	printf("%d pairs, %u differ\n", count, tally.differing);
	return tally.differing ? 1 : 0;
}
