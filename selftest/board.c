// SPDX-License-Identifier: GPL-2.0-only
#include "board.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve.h"

#define ROUNDS 3u

struct board *board_new(size_t size, unsigned int ranks, unsigned int step_us)
{
	struct board *board;

	if (ranks < 2 || ranks > BOARD_RANKS_MAX)
		return NULL;
	board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return NULL;
	(void)serve_block();
	board->ranks = ranks;
	board->step_us = step_us;
	return board;
}

bool board_stops(const struct board *board)
{
	return __atomic_load_n(&board->stop, __ATOMIC_ACQUIRE);
}

void board_enter(struct board *board)
{
	(void)__atomic_add_fetch(&board->ready, 1, __ATOMIC_ACQ_REL);
}

void board_count_round(struct board *board, unsigned int rank)
{
	(void)__atomic_add_fetch(&board->rounds[rank], 1, __ATOMIC_ACQ_REL);
}

void board_fail(struct board *board)
{
	(void)__atomic_add_fetch(&board->failed, 1, __ATOMIC_ACQ_REL);
}

static bool has_failed(const struct board *board)
{
	return __atomic_load_n(&board->failed, __ATOMIC_ACQUIRE);
}

bool board_goes_on(struct board *board)
{
	uint32_t before[BOARD_RANKS_MAX];

	memcpy(before, board->rounds, sizeof(before));
	for (unsigned int i = 0; i < board->ranks; i++) {
		while (__atomic_load_n(&board->rounds[i], __ATOMIC_ACQUIRE) - before[i] < ROUNDS) {
			if (has_failed(board))
				return false;
			(void)usleep(board->step_us);
		}
	}
	return true;
}

static bool await_ranks(const struct board *board)
{
	while (__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE) < board->ranks &&
	       !has_failed(board))
		(void)usleep(board->step_us);
	return !has_failed(board);
}

static bool end_ranks(struct board *board)
{
	bool good = true;
	int status;
	pid_t pid;

	__atomic_store_n(&board->stop, 1, __ATOMIC_RELEASE);
	while ((pid = wait(&status)) > 0 || errno == EINTR)
		good &= pid < 0 || (WIFEXITED(status) && !WEXITSTATUS(status));
	return good;
}

int board_serve(struct board *board, struct report *report, bool (*verify)(void *argument),
		void *argument)
{
	const sigset_t signals = serve_block();
	bool good = await_ranks(board);
	int signal;

	if (good)
		report_line(report, "ready, %u ranks", board->ranks);
	while (good && !sigwait(&signals, &signal) && signal == SIGUSR1) {
		good = verify(argument);
		if (good)
			report_line(report, "verified, %u ranks", board->ranks);
	}
	good &= end_ranks(board);
	report_line(report, good ? "finished ok" : "FAILED: a rank is wrong");
	return good ? 0 : 1;
}
