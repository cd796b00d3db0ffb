/* SPDX-License-Identifier: GPL-2.0-only */
/* What the processes of a ring, the ranks, and their parent tell each other, in shared memory. The
 * parent serves the signals of a client: SIGUSR1 verifies that each rank goes on, SIGTERM ends all.
 */
#ifndef SELFTEST_BOARD_H
#define SELFTEST_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report.h"

#define BOARD_RANKS_MAX 16u

struct board {
	unsigned int ranks;
	/* Microseconds between two looks. */
	unsigned int step_us;
	uint32_t stop, ready, failed;
	uint32_t rounds[BOARD_RANKS_MAX];
};

/* For the parent, before it forks the ranks: also blocks the signals. @size: of the structure that
 * begins with the board. NULL: no memory, or not 2 to BOARD_RANKS_MAX ranks. */
struct board *board_new(size_t size, unsigned int ranks, unsigned int step_us);

/* For ranks: whether to end, and what they have done. */
bool board_stops(const struct board *board);
void board_enter(struct board *board);
void board_count_round(struct board *board, unsigned int rank);
void board_fail(struct board *board);

/* For the parent: waits until each rank has done three rounds more. False: a rank has failed. */
bool board_goes_on(struct board *board);
/* Waits for all ranks, then serves signals until the end, and returns the exit status.
 * @verify, with @argument, answers SIGUSR1. */
int board_serve(struct board *board, struct report *report, bool (*verify)(void *argument),
		void *argument);

#endif
