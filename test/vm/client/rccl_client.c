// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock HIP and RCCL: GPUs add up their vectors, in one process or in one each. At a
 * dump they are in the middle of a row of collectives. README.md has its options, signals and log
 * lines. */
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hip.h"
#include "library.h"
#include "rccl.h"
#include "serve.h"

#define MAX_GPUS 8
#define WORDS    2000000u /* of the vectors of a row */
#define STEP     1024u /* a collective of a row writes so many words behind where the last one did */

struct rank {
	void *comm, *stream, *done; /* done: an event behind the row */
	uint32_t *from, *to;
};

struct client {
	struct report report;
	struct hip hip;
	struct rccl rccl;
	struct rank ranks[MAX_GPUS];
	int gpus;
	int first, end;      /* the ranks of this process, which are the numbers of their GPUs */
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

static uint32_t pattern(uint32_t generation, int rank, uint32_t word)
{
	return (word + (generation * MAX_GPUS + (uint32_t)rank + 1) * 40503u) * 2654435761u;
}

static uint32_t sum_of(const struct client *client, uint32_t word)
{
	uint32_t sum = 0;
	int rank;

	for (rank = 0; rank < client->gpus; rank++)
		sum += pattern(client->generation, rank, word);
	return sum;
}

static bool set_up_rank(struct client *client, int device)
{
	struct rank *rank = &client->ranks[device];
	struct hip *hip = &client->hip;
	void *from, *to;

	if (!library_good(&client->report, hip->SetDevice(device), "hipSetDevice") ||
	    !library_good(&client->report, hip->StreamCreate(&rank->stream), "hipStreamCreate") ||
	    !library_good(&client->report, hip->EventCreate(&rank->done), "hipEventCreate") ||
	    !library_good(&client->report, hip->Malloc(&from, WORDS * 4), "hipMalloc") ||
	    !library_good(&client->report, hip->Malloc(&to, reach(client) * 4), "hipMalloc"))
		return false;
	rank->from = from;
	rank->to = to;
	return true;
}

static bool leave_id(struct client *client, struct rccl_id *id)
{
	char part[256];
	FILE *file;

	(void)snprintf(part, sizeof(part), "%s.part", client->id_path);
	file = fopen(part, "w");
	if (!library_good(&client->report, client->rccl.GetUniqueId(id), "ncclGetUniqueId") ||
	    !file)
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
	struct rccl *rccl = &client->rccl;
	int devices[MAX_GPUS], i, rank = client->first;
	struct rccl_id id;

	for (i = 0; i < client->gpus; i++)
		devices[i] = i;
	if (!client->id_path)
		return library_good(&client->report,
				    rccl->CommInitAll(ret_comms, client->gpus, devices),
				    "ncclCommInitAll");
	if (!library_good(&client->report, client->hip.SetDevice(rank), "hipSetDevice"))
		return false;
	if (!(rank ? find_id(client, &id) : leave_id(client, &id)))
		return report_fail(&client->report, false, "no name of the communicator");
	return library_good(&client->report,
			    rccl->CommInitRank(&ret_comms[rank], client->gpus, id, rank),
			    "ncclCommInitRank");
}

static bool set_up(void *arg)
{
	struct client *client = arg;
	const char *missing = hip_open(&client->hip);
	void *comms[MAX_GPUS];
	int i;

	if (!missing)
		missing = rccl_open(&client->rccl);
	if (missing)
		return report_fail(&client->report, false, "there is no %s", missing);
	client->host = malloc(reach(client) * 4);
	if (!client->host || !connect_ranks(client, comms))
		return false;
	for (i = client->first; i < client->end; i++) {
		client->ranks[i].comm = comms[i];
		if (!set_up_rank(client, i))
			return false;
	}
	return true;
}

/* Gives each GPU a new vector, and forgets the last sums. */
static bool put_vectors(struct client *client, uint32_t words, size_t sums)
{
	struct hip *hip = &client->hip;
	uint32_t word;
	int i;

	client->generation++;
	for (i = client->first; i < client->end; i++) {
		struct rank *rank = &client->ranks[i];

		for (word = 0; word < words; word++)
			client->host[word] = pattern(client->generation, i, word);
		if (!library_good(&client->report, hip->SetDevice(i), "hipSetDevice") ||
		    !library_good(&client->report,
				  hip->Memcpy(rank->from, client->host, words * 4, HIP_TO_DEVICE),
				  "a copy to VRAM") ||
		    !library_good(&client->report, hip->Memset(rank->to, 0, sums * 4),
				  "hipMemset") ||
		    !library_good(&client->report, hip->StreamSynchronize(NULL),
				  "hipStreamSynchronize"))
			return false;
	}
	return true;
}

/* Puts a collective into all streams: the first @words words, whose sums go behind the first @skip.
 */
static bool add_up(struct client *client, size_t words, size_t skip)
{
	struct rccl *rccl = &client->rccl;
	int i;

	if (!library_good(&client->report, rccl->GroupStart(), "ncclGroupStart"))
		return false;
	for (i = client->first; i < client->end; i++) {
		struct rank *rank = &client->ranks[i];

		if (!library_good(&client->report,
				  rccl->AllReduce(rank->from, rank->to + skip, words, RCCL_UINT32,
						  RCCL_SUM, rank->comm, rank->stream),
				  "ncclAllReduce"))
			return false;
	}
	return library_good(&client->report, rccl->GroupEnd(), "ncclGroupEnd");
}

static bool begin(void *arg)
{
	struct client *client = arg;
	struct hip *hip = &client->hip;
	uint32_t collective;
	int i;

	if (!put_vectors(client, WORDS, reach(client)))
		return false;
	for (collective = 0; collective < client->collectives; collective++)
		if (!add_up(client, WORDS, collective * (size_t)STEP))
			return false;
	for (i = client->first; i < client->end; i++)
		if (!library_good(&client->report, hip->SetDevice(i), "hipSetDevice") ||
		    !library_good(&client->report,
				  hip->EventRecord(client->ranks[i].done, client->ranks[i].stream),
				  "hipEventRecord"))
			return false;
	return true;
}

/* The first @words sums that a GPU has. Each of @collectives leaves STEP words that the next one
 * does not write, and the last one leaves all. */
static bool compare(struct client *client, int device, size_t words, uint32_t collectives)
{
	size_t i;

	if (!library_good(&client->report, client->hip.SetDevice(device), "hipSetDevice") ||
	    !library_good(&client->report,
			  client->hip.Memcpy(client->host, client->ranks[device].to, words * 4,
					     HIP_TO_HOST),
			  "a copy from VRAM"))
		return false;
	for (i = 0; i < words; i++) {
		size_t collective = i / STEP < collectives ? i / STEP : collectives - 1u;
		uint32_t want = sum_of(client, (uint32_t)(i - collective * STEP));

		if (client->host[i] != want)
			return report_fail(&client->report, false,
					   "GPU %d, collective %zu, word %zu: %#x, not %#x", device,
					   collective, i, client->host[i], want);
	}
	return true;
}

static bool wait_for_all(struct client *client)
{
	int i;

	for (i = client->first; i < client->end; i++)
		if (!library_good(&client->report, client->hip.SetDevice(i), "hipSetDevice") ||
		    !library_good(&client->report,
				  client->hip.StreamSynchronize(client->ranks[i].stream),
				  "hipStreamSynchronize"))
			return false;
	return true;
}

static bool end_row(struct client *client)
{
	int i;

	for (i = client->first; i < client->end; i++)
		if (!client->may_have_ended &&
		    client->hip.EventQuery(client->ranks[i].done) != HIP_NOT_READY)
			return report_fail(&client->report, false,
					   "GPU %d had done all collectives before", i);
	if (!wait_for_all(client))
		return false;
	for (i = client->first; i < client->end; i++)
		if (!compare(client, i, reach(client), client->collectives))
			return false;
	return true;
}

/* Vectors that grow: RCCL has other protocols for short ones. */
static bool add_up_growing(struct client *client)
{
	uint32_t words;
	int i;

	for (words = 1; words < WORDS; words = words * 5 + 2) {
		if (!put_vectors(client, words, words) || !add_up(client, words, 0) ||
		    !wait_for_all(client))
			return false;
		for (i = client->first; i < client->end; i++)
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
	struct hip *hip = &client->hip;
	int i;

	for (i = client->first; i < client->end; i++) {
		struct rank *rank = &client->ranks[i];

		if (!library_good(&client->report, client->rccl.CommDestroy(rank->comm),
				  "ncclCommDestroy") ||
		    !library_good(&client->report, hip->Free(rank->from), "hipFree") ||
		    !library_good(&client->report, hip->Free(rank->to), "hipFree") ||
		    !library_good(&client->report, hip->EventDestroy(rank->done),
				  "hipEventDestroy") ||
		    !library_good(&client->report, hip->StreamDestroy(rank->stream),
				  "hipStreamDestroy"))
			return false;
	}
	return true;
}

static const char *parse(int argc, char **argv, struct client *client)
{
	static const struct option options[] = {
		{ "log", required_argument, NULL, 'l' },
		{ "collectives", required_argument, NULL, 'c' },
		{ "gpus", required_argument, NULL, 'g' },
		{ "may-have-ended", no_argument, NULL, 'e' },
		{ "rank", required_argument, NULL, 'r' },
		{ "id", required_argument, NULL, 'i' },
		{ 0 },
	};
	const char *log = NULL;
	int option, rank = -1;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			log = optarg;
		else if (option == 'c')
			client->collectives = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'g')
			client->gpus = (int)strtol(optarg, NULL, 10);
		else if (option == 'e')
			client->may_have_ended = true;
		else if (option == 'r')
			rank = (int)strtol(optarg, NULL, 10);
		else if (option == 'i')
			client->id_path = optarg;
		else
			return NULL;
	}
	client->first = rank < 0 ? 0 : rank;
	client->end = rank < 0 ? client->gpus : rank + 1;
	return optind == argc && client->gpus <= MAX_GPUS && client->end <= client->gpus &&
			       (rank >= 0) == (client->id_path != NULL)
		       ? log
		       : NULL;
}

int main(int argc, char **argv)
{
	static struct client client = { .gpus = 2 };
	const char *log = parse(argc, argv, &client);

	if (!log) {
		(void)fprintf(stderr, "usage: rccl_client --log FILE [--gpus N] [--collectives N] "
				      "[--may-have-ended] [--rank N --id FILE]\n");
		return 2;
	}
	report_init(&client.report, log);
	return serve(&(struct serve){ &client.report, &client, set_up, begin, verify, tear_down });
}
