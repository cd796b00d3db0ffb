// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock HIP and RCCL: GPUs add up their vectors, in one process or in one each. At a
 * dump they are in the middle of a row of collectives. README.md has its options, signals and log
 * lines. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hip.h"
#include "library.h"
#include "options.h"
#include "serve.h"

/* The functions of RCCL that the client calls. The signatures are those of its header, with
 * communicators and streams as pointers to void. */
#define RCCL_UINT32 3
#define RCCL_SUM    0

struct rccl_id {
	char bytes[128];
};

#define RCCL_FUNCTIONS(X)                                                          \
	X(GetUniqueId, (struct rccl_id * ret_id))                                  \
	X(CommInitRank, (void **ret_comm, int ranks, struct rccl_id id, int rank)) \
	X(CommInitAll, (void **ret_comms, int ranks, const int *devices))          \
	X(CommDestroy, (void *comm))                                               \
	X(GroupStart, (void))                                                      \
	X(GroupEnd, (void))                                                        \
	X(AllReduce,                                                               \
	  (const void *from, void *to, size_t count, int type, int op, void *comm, void *stream))

struct rccl {
	RCCL_FUNCTIONS(LIBRARY_MEMBER)
};

#define MAX_GPUS 8
#define WORDS    2000000u /* of the vectors of a row */
#define STEP     1024u /* a collective of a row writes so many words behind where the last one did */

struct rank {
	void *comm, *stream, *done; /* done: an event behind the row */
	void *from, *to;
};

struct client {
	struct report report;
	struct hip hip;
	struct rccl rccl;
	struct rank ranks[MAX_GPUS];
	uint32_t gpus;
	uint32_t first, end; /* the ranks of this process, which are the numbers of their GPUs */
	const char *id_path; /* where the process of rank 0 leaves the name of the communicator */
	uint32_t *host;
	uint32_t collectives; /* of a row */
	bool may_have_ended;  /* the row, before it is verified */
	uint32_t generation;
};

/* The words that the last collective of a row reaches. */
static size_t reach(const struct client *client)
{
	return WORDS + (client->collectives ? client->collectives - 1 : 0) * (size_t)STEP;
}

static uint32_t pattern(uint32_t generation, uint32_t rank, uint32_t word)
{
	return (word + (generation * MAX_GPUS + rank + 1) * 40503u) * 2654435761u;
}

static uint32_t sum_of(const struct client *client, uint32_t word)
{
	uint32_t sum = 0;

	for (uint32_t rank = 0; rank < client->gpus; rank++)
		sum += pattern(client->generation, rank, word);
	return sum;
}

static bool set_up_rank(struct client *client, struct rank *rank, int device)
{
	return GOOD(client, hip.SetDevice(device)) &&
	       GOOD(client, hip.StreamCreate(&rank->stream)) &&
	       GOOD(client, hip.EventCreate(&rank->done)) &&
	       GOOD(client, hip.Malloc(&rank->from, WORDS * 4)) &&
	       GOOD(client, hip.Malloc(&rank->to, reach(client) * 4));
}

static bool leave_id(struct client *client, struct rccl_id *id)
{
	char part[256];
	FILE *file;

	(void)snprintf(part, sizeof(part), "%s.part", client->id_path);
	file = fopen(part, "w");
	if (!GOOD(client, rccl.GetUniqueId(id)) || !file)
		return false;
	return fwrite(id, sizeof(*id), 1, file) == 1 && fclose(file) == 0 &&
	       rename(part, client->id_path) == 0;
}

static bool find_id(struct client *client, struct rccl_id *ret_id)
{
	int fd;
	bool found;

	while ((fd = open(client->id_path, O_RDONLY)) < 0)
		(void)usleep(10000);
	found = read(fd, ret_id, sizeof(*ret_id)) == sizeof(*ret_id);
	(void)close(fd);
	return found;
}

/* All ranks in this process, or one of them. */
static bool connect_ranks(struct client *client, void **ret_comms)
{
	const int gpus = (int)client->gpus, rank = (int)client->first;
	struct rccl_id id;

	/* Rank N has GPU N unless a list says otherwise. */
	if (!client->id_path)
		return GOOD(client, rccl.CommInitAll(ret_comms, gpus, NULL));
	if (!GOOD(client, hip.SetDevice(rank)))
		return false;
	if (!(rank ? find_id(client, &id) : leave_id(client, &id)))
		return report_fail(&client->report, false, "no name of the communicator");
	return GOOD(client, rccl.CommInitRank(&ret_comms[rank], gpus, id, rank));
}

static bool set_up(void *arg)
{
	struct client *client = arg;
#define RCCL_NAME(name, parameters) "nccl" #name,
	static const char *const files[] = { "librccl.so.1", NULL }, *const names[] = {
		RCCL_FUNCTIONS(RCCL_NAME) NULL
	};
#undef RCCL_NAME
	void *comms[MAX_GPUS];

	if (!hip_open(&client->report, &client->hip) ||
	    !library_open(&client->report, files, names, &client->rccl))
		return false;
	client->host = malloc(reach(client) * 4);
	if (!client->host || !connect_ranks(client, comms))
		return false;
	for (uint32_t i = client->first; i < client->end; i++) {
		client->ranks[i].comm = comms[i];
		if (!set_up_rank(client, &client->ranks[i], (int)i))
			return false;
	}
	return true;
}

/* Gives each GPU a new vector, and forgets the last sums. */
static bool put_vectors(struct client *client, uint32_t words, size_t sums)
{
	client->generation++;
	for (uint32_t i = client->first; i < client->end; i++) {
		struct rank *rank = &client->ranks[i];

		for (uint32_t word = 0; word < words; word++)
			client->host[word] = pattern(client->generation, i, word);
		if (!GOOD(client, hip.SetDevice(i)) ||
		    !GOOD(client, hip.Memcpy(rank->from, client->host, words * 4, HIP_TO_DEVICE)) ||
		    !GOOD(client, hip.Memset(rank->to, 0, sums * 4)) ||
		    !GOOD(client, hip.StreamSynchronize(NULL)))
			return false;
	}
	return true;
}

/* Puts a collective into all streams: the first @words words, whose sums go behind the first @skip.
 */
static bool add_up(struct client *client, size_t words, size_t skip)
{
	if (!GOOD(client, rccl.GroupStart()))
		return false;
	for (uint32_t i = client->first; i < client->end; i++) {
		struct rank *rank = &client->ranks[i];

		if (!GOOD(client, rccl.AllReduce(rank->from, (uint32_t *)rank->to + skip, words,
						 RCCL_UINT32, RCCL_SUM, rank->comm, rank->stream)))
			return false;
	}
	return GOOD(client, rccl.GroupEnd());
}

static bool begin(void *arg)
{
	struct client *client = arg;

	if (!put_vectors(client, WORDS, reach(client)))
		return false;
	for (uint32_t collective = 0; collective < client->collectives; collective++)
		if (!add_up(client, WORDS, collective * (size_t)STEP))
			return false;
	for (uint32_t i = client->first; i < client->end; i++)
		if (!GOOD(client, hip.SetDevice(i)) ||
		    !GOOD(client, hip.EventRecord(client->ranks[i].done, client->ranks[i].stream)))
			return false;
	return true;
}

/* The first @words sums that a GPU has. Each of @collectives leaves STEP words that the next one
 * does not write, and the last one leaves all. */
static bool compare(struct client *client, uint32_t device, size_t words, uint32_t collectives)
{
	size_t i;

	if (!GOOD(client, hip.SetDevice(device)) ||
	    !GOOD(client,
		  hip.Memcpy(client->host, client->ranks[device].to, words * 4, HIP_TO_HOST)))
		return false;
	for (i = 0; i < words; i++) {
		size_t collective = i / STEP < collectives ? i / STEP : collectives - 1u;
		uint32_t want = sum_of(client, (uint32_t)(i - collective * STEP));

		if (client->host[i] != want)
			return report_fail(&client->report, false,
					   "GPU %u, collective %zu, word %zu: %#x, not %#x", device,
					   collective, i, client->host[i], want);
	}
	return true;
}

static bool wait_for_all(struct client *client)
{
	for (uint32_t i = client->first; i < client->end; i++)
		if (!GOOD(client, hip.SetDevice(i)) ||
		    !GOOD(client, hip.StreamSynchronize(client->ranks[i].stream)))
			return false;
	return true;
}

static bool end_row(struct client *client)
{
	for (uint32_t i = client->first; i < client->end; i++)
		if (!client->may_have_ended &&
		    client->hip.EventQuery(client->ranks[i].done) != HIP_NOT_READY)
			return report_fail(&client->report, false,
					   "GPU %u had done all collectives before", i);
	if (!wait_for_all(client))
		return false;
	for (uint32_t i = client->first; i < client->end; i++)
		if (!compare(client, i, reach(client), client->collectives))
			return false;
	return true;
}

/* Vectors that grow: RCCL has other protocols for short ones. */
static bool add_up_growing(struct client *client)
{
	for (uint32_t words = 1; words < WORDS; words = words * 5 + 2) {
		if (!put_vectors(client, words, words) || !add_up(client, words, 0) ||
		    !wait_for_all(client))
			return false;
		for (uint32_t i = client->first; i < client->end; i++)
			if (!compare(client, i, words, 1))
				return false;
	}
	return true;
}

static bool verify(void *arg)
{
	struct client *client = arg;

	return (!client->collectives || end_row(client)) && add_up_growing(client);
}

static bool tear_down(void *arg)
{
	struct client *client = arg;

	for (uint32_t i = client->first; i < client->end; i++) {
		struct rank *rank = &client->ranks[i];

		if (!GOOD(client, rccl.CommDestroy(rank->comm)) ||
		    !GOOD(client, hip.Free(rank->from)) || !GOOD(client, hip.Free(rank->to)) ||
		    !GOOD(client, hip.EventDestroy(rank->done)) ||
		    !GOOD(client, hip.StreamDestroy(rank->stream)))
			return false;
	}
	return true;
}

/* The GPUs of this process: all, or that of its rank. */
static bool choose_ranks(struct client *client, uint32_t rank)
{
	client->first = client->id_path ? rank : 0;
	client->end = client->id_path ? rank + 1 : client->gpus;
	return client->gpus <= MAX_GPUS && client->end <= client->gpus;
}

int main(int argc, char **argv)
{
	static struct client client = { .gpus = 2 };
	uint32_t rank = 0;
	const struct choice choices[] = {
		{ "--log", .text = &client.report.path, .is_needed = true },
		{ "--collectives", .number = &client.collectives },
		{ "--gpus", .number = &client.gpus },
		{ "--may-have-ended", .flag = &client.may_have_ended },
		{ "--rank", .number = &rank },
		{ "--id", .text = &client.id_path },
		{ 0 },
	};

	(void)argc;
	if (!options_parse(argv, choices) || !choose_ranks(&client, rank))
		return 2;
	report_init(&client.report, client.report.path);
	return serve(&(struct serve){ &client.report, &client, set_up, begin, verify, tear_down });
}
