/* SPDX-License-Identifier: GPL-2.0-only */
/* rocr_sharer LOG RANKS [host]: processes in a ring, on stock ROCr. Each owns a buffer in VRAM, or
 * with `host` one of the CPU's pool, and attaches that of the process before it by ROCr's IPC. A
 * number goes around the ring: a process that finds it in the buffer of the process before it
 * compares the page that follows from the number, answers in that buffer, and writes number and
 * page into its own buffer. The first process adds one. An owner that has no answer when the number
 * is back fails, and so does a process that the number does not reach in time. So a process with a
 * copy instead of the buffer is found either way.
 *
 * Copies are done by the first GPU, which also has the buffers in VRAM. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "board.h"
#include "rocr.h"
#include "rocr_report.h"

#define RANKS_MAX    8u
#define PAGE         4096u
#define WORDS        (PAGE / sizeof(uint64_t))
#define BUFFER_PAGES 4u
/* Pages of a buffer: what the owner writes, what the next process answers; the others never change.
 */
enum { QUESTION, ANSWER, FIRST_STILL };
#define BYTES (BUFFER_PAGES * PAGE)
/* A process waits so many of its steps for a number. */
#define PATIENCE 3000
#define STEP_US  20000
#define GOLDEN   0x9e3779b97f4a7c15ull

/* Shared by all processes. */
struct ring {
	struct board board;
	bool is_host;
	uint32_t created[RANKS_MAX];
	hsa_amd_ipc_memory_t handles[RANKS_MAX];
};

struct rank {
	struct ring *ring;
	unsigned int number, before;
	struct rocr rocr;
	char *own, *import;
	uint64_t *staging; /* of the CPU's pool, as large as a buffer */
	struct rocr_copier copier;
	uint64_t passed; /* the number that the own buffer has */
	unsigned int waited;
};

static uint64_t word(unsigned int owner, uint64_t number, size_t i)
{
	return (((uint64_t)owner + 1) << 48 ^ number << 16 ^ i) * GOLDEN;
}

static bool copy_in(struct rank *rank, char *vram, size_t bytes)
{
	return rocr_copy_in(&rank->copier, vram, rank->staging, bytes);
}

static bool copy_out(struct rank *rank, const char *vram, size_t bytes)
{
	return rocr_copy_out(&rank->copier, rank->staging, vram, bytes);
}

/* The number comes last: then the page is there. */
static bool pass_on(struct rank *rank, uint64_t number)
{
	for (size_t i = 1; i < WORDS; i++)
		rank->staging[i] = word(rank->number, number, i);
	rank->staging[0] = rank->passed;
	if (!copy_in(rank, rank->own, PAGE))
		return false;
	rank->staging[0] = number;
	if (!copy_in(rank, rank->own, sizeof(number)))
		return false;
	rank->passed = number;
	rank->waited = 0;
	return true;
}

static bool make_own(struct rank *rank)
{
	const struct rocr_place *place = rank->ring->is_host ? &rank->rocr.cpu : rank->rocr.gpus;

	if (!rocr_allocate(place, rank->rocr.gpus, BYTES, &rank->own) ||
	    !rocr_allocate(&rank->rocr.cpu, rank->rocr.gpus, BYTES, &rank->staging) ||
	    !rocr_copier_open(&rank->rocr, rank->rocr.gpus, &rank->copier))
		return false;
	memset(rank->staging, 0, BYTES);
	for (size_t i = FIRST_STILL * WORDS; i < BUFFER_PAGES * WORDS; i++)
		rank->staging[i] = word(rank->number, 0, i);
	return copy_in(rank, rank->own, BYTES) &&
	       rocr_good(hsa_amd_ipc_memory_create(rank->own, BYTES,
						   &rank->ring->handles[rank->number]),
			 "IPC handle");
}

static bool attach(struct rank *rank)
{
	struct ring *ring = rank->ring;
	void *import;

	__atomic_store_n(&ring->created[rank->number], 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&ring->created[rank->before], __ATOMIC_ACQUIRE)) {
		if (board_stops(&ring->board))
			return false;
		(void)usleep(STEP_US);
	}
	if (!rocr_good(hsa_amd_ipc_memory_attach(&ring->handles[rank->before], BYTES, 1,
						 &rank->rocr.gpus->agent, &import),
		       "attach"))
		return false;
	rank->import = import;
	return true;
}

static bool start(struct rank *rank)
{
	return rocr_open(&rank->rocr) && make_own(rank) && attach(rank) &&
	       (rank->number || pass_on(rank, 1));
}

static bool check_import(struct rank *rank, uint64_t number)
{
	for (size_t i = 1; i < BUFFER_PAGES * WORDS; i++) {
		bool still = i >= FIRST_STILL * WORDS;

		if (i / WORDS == ANSWER ||
		    rank->staging[i] == word(rank->before, still ? 0 : number, i))
			continue;
		return rocr_say("rank %u: word %zu of rank %u is 0x%" PRIx64
				" with number %" PRIu64,
				rank->number, i, rank->before, rank->staging[i], number);
	}
	return true;
}

/* The next process has answered with the number that this one has passed on. */
static bool is_answered(struct rank *rank)
{
	if (!copy_out(rank, rank->own + ANSWER * PAGE, sizeof(*rank->staging)))
		return false;
	if (rank->staging[0] == rank->passed)
		return true;
	return rocr_say("rank %u: the answer to number %" PRIu64 " is %" PRIu64, rank->number,
			rank->passed, rank->staging[0]);
}

/* The number @number has come. */
static bool take(struct rank *rank, uint64_t number)
{
	/* what was read before may be older than the number */
	if (!copy_out(rank, rank->import, BYTES) || !check_import(rank, number))
		return false;
	rank->staging[0] = number;
	if (!copy_in(rank, rank->import + ANSWER * PAGE, sizeof(number)) || !is_answered(rank) ||
	    !pass_on(rank, rank->number ? number : number + 1))
		return false;
	board_count_round(&rank->ring->board, rank->number);
	return true;
}

static bool step(struct rank *rank)
{
	uint64_t wanted = rank->number ? rank->passed + 1 : rank->passed;

	if (!copy_out(rank, rank->import, BYTES))
		return false;
	if (rank->staging[0] == wanted)
		return take(rank, wanted);
	if (rank->staging[0] != wanted - 1 || rank->waited++ == PATIENCE)
		return rocr_say("rank %u: waits for number %" PRIu64 ", and sees %" PRIu64,
				rank->number, wanted, rank->staging[0]);
	return true;
}

static bool leave(struct rank *rank)
{
	return rocr_good(hsa_amd_ipc_memory_detach(rank->import), "detach") &&
	       rocr_good(hsa_amd_memory_pool_free(rank->own), "free") &&
	       rocr_good(hsa_amd_memory_pool_free(rank->staging), "free") &&
	       rocr_copier_close(&rank->copier) && rocr_good(hsa_shut_down(), "shut down");
}

static bool run_rank(struct rank *rank)
{
	bool good = start(rank);

	if (good)
		board_enter(&rank->ring->board);
	while (good && !board_stops(&rank->ring->board)) {
		good = step(rank);
		(void)usleep(STEP_US);
	}
	good = good && leave(rank);
	if (!good)
		board_fail(&rank->ring->board);
	return good;
}

static bool fork_ranks(struct ring *ring)
{
	const unsigned int ranks = ring->board.ranks;

	for (unsigned int i = 0; i < ranks; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return false;
		if (pid == 0) {
			struct rank rank = { .ring = ring,
					     .number = i,
					     .before = (i + ranks - 1) % ranks };

			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(run_rank(&rank) ? 0 : 1);
		}
	}
	return true;
}

static bool verify(void *ring)
{
	return board_goes_on(&((struct ring *)ring)->board);
}

int main(int argc, char **argv)
{
	unsigned int ranks = argc >= 3 ? (unsigned int)atoi(argv[2]) : 0;
	bool is_host = argc == 4 && !strcmp(argv[3], "host");
	struct ring *ring;

	if (ranks < 2 || ranks > RANKS_MAX || (argc != 3 && !is_host))
		return 2;
	ring = (struct ring *)board_new(sizeof(*ring), ranks, STEP_US);
	if (!ring)
		return 1;
	ring->is_host = is_host;
	if (!fork_ranks(ring))
		return 1;
	return board_serve(&ring->board, rocr_report_init(argv[1]), verify, ring);
}
