// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock HIP: streams, events, copies and kernels on the first GPU. At a dump a kernel
 * is in the middle of its loop, and a stream waits for it. README.md has its options, signals and
 * log lines. */
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hip.h"
#include "library.h"
#include "march.h"
#include "serve.h"

#define BUFFERS     8u
#define WORDS       32768u
#define IN_LOOP     5u /* rounds */
#define MORE_ROUNDS 5u
#define PATIENCE_S  100u
#define REST_US     20000u
#define FILLED      0x5a5a5a5au

/* What the kernel reaches, and the CPU at the same time. */
struct page {
	struct march_control control;
	uint64_t cells[MARCH_ITEMS];
};

struct client {
	struct report report;
	const char *code_object;
	struct hip hip;
	void *module, *march;
	struct page *page;
	void *kernels, *waiting, *copies; /* streams */
	void *marched, *waited, *copied;  /* events */
	uint32_t *vram[BUFFERS], *filled, *host, *late;
	unsigned int generation;
	pthread_t loop;
	bool stop;
	uint32_t *loop_host;
};

static uint32_t pattern(unsigned int generation, unsigned int buffer, uint32_t word)
{
	return (word + (generation * BUFFERS + buffer + 1) * 40503u) * 2654435761u;
}

static bool compare(struct client *client, const uint32_t *words, unsigned int generation,
		    unsigned int buffer, const char *what)
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (words[i] != pattern(generation, buffer, i))
			return report_fail(&client->report, false, "%s: word %u is wrong", what, i);
	return true;
}

/* The first buffer keeps the contents of the first generation. Copies of it never rest. */
static void *copy_again_and_again(void *arg)
{
	struct client *client = arg;
	struct hip *hip = &client->hip;

	if (!library_good(&client->report, hip->SetDevice(0), "hipSetDevice"))
		return NULL;
	while (!__atomic_load_n(&client->stop, __ATOMIC_ACQUIRE)) {
		memset(client->loop_host, 0, WORDS * 4);
		if (!library_good(&client->report,
				  hip->MemcpyAsync(client->loop_host, client->vram[0], WORDS * 4,
						   HIP_TO_HOST, client->copies),
				  "a copy in the loop") ||
		    !library_good(&client->report, hip->EventRecord(client->copied, client->copies),
				  "hipEventRecord") ||
		    !library_good(&client->report, hip->EventSynchronize(client->copied),
				  "hipEventSynchronize") ||
		    !compare(client, client->loop_host, 0, 0, "a copy in the loop"))
			return NULL;
		(void)usleep(REST_US);
	}
	return NULL;
}

static bool put(struct client *client, unsigned int buffer)
{
	for (uint32_t i = 0; i < WORDS; i++)
		client->host[i] = pattern(client->generation, buffer, i);
	return library_good(
		&client->report,
		client->hip.Memcpy(client->vram[buffer], client->host, WORDS * 4, HIP_TO_DEVICE),
		"a copy to VRAM");
}

static bool make_streams(struct client *client)
{
	struct hip *hip = &client->hip;

	return library_good(&client->report, hip->StreamCreate(&client->kernels),
			    "hipStreamCreate") &&
	       library_good(&client->report, hip->StreamCreate(&client->waiting),
			    "hipStreamCreate") &&
	       library_good(&client->report, hip->StreamCreate(&client->copies),
			    "hipStreamCreate") &&
	       library_good(&client->report, hip->EventCreate(&client->marched),
			    "hipEventCreate") &&
	       library_good(&client->report, hip->EventCreate(&client->waited), "hipEventCreate") &&
	       library_good(&client->report, hip->EventCreate(&client->copied), "hipEventCreate");
}

static bool host_memory(struct client *client, void *ret_memory, size_t size)
{
	void *memory;

	if (!library_good(&client->report, client->hip.HostMalloc(&memory, size, HIP_HOST_COHERENT),
			  "hipHostMalloc"))
		return false;
	memcpy(ret_memory, &memory, sizeof(memory));
	return true;
}

static bool vram(struct client *client, uint32_t **ret_memory)
{
	void *memory;

	if (!library_good(&client->report, client->hip.Malloc(&memory, WORDS * 4), "hipMalloc"))
		return false;
	*ret_memory = memory;
	return true;
}

static bool allocate(struct client *client)
{
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (!vram(client, &client->vram[i]))
			return false;
	return vram(client, &client->filled) && host_memory(client, &client->host, WORDS * 4) &&
	       host_memory(client, &client->late, WORDS * 4) &&
	       host_memory(client, &client->loop_host, WORDS * 4) &&
	       host_memory(client, &client->page, sizeof(*client->page));
}

static bool set_up(void *arg)
{
	struct client *client = arg;
	struct hip *hip = &client->hip;
	const char *missing = hip_open(hip);

	if (missing)
		return report_fail(&client->report, false, "there is no %s", missing);
	return library_good(&client->report, hip->Init(0), "hipInit") &&
	       library_good(&client->report, hip->SetDevice(0), "hipSetDevice") &&
	       make_streams(client) && allocate(client) &&
	       library_good(&client->report, hip->ModuleLoad(&client->module, client->code_object),
			    "hipModuleLoad") &&
	       library_good(&client->report,
			    hip->ModuleGetFunction(&client->march, client->module, "march"),
			    "hipModuleGetFunction") &&
	       put(client, 0) &&
	       pthread_create(&client->loop, NULL, copy_again_and_again, client) == 0;
}

/* Waits until the kernel has done more rounds. */
static bool goes_on(struct client *client, uint32_t rounds)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (client->page->control.rounds < rounds) {
		if (time(NULL) > end)
			return report_fail(&client->report, false,
					   "the kernel stands still after %u rounds",
					   client->page->control.rounds);
		(void)usleep(1000);
	}
	return true;
}

static bool start_kernel(struct client *client)
{
	struct hip *hip = &client->hip;
	void *cells = client->page->cells, *control = &client->page->control;
	void *arguments[] = { &cells, &control };

	for (uint32_t i = 0; i < MARCH_ITEMS; i++)
		client->page->cells[i] = march_first(i);
	client->page->control = (struct march_control){ .wanted = march_wanted() };
	return library_good(&client->report,
			    hip->ModuleLaunchKernel(client->march, 1, 1, 1, MARCH_ITEMS, 1, 1, 0,
						    client->kernels, arguments, NULL),
			    "hipModuleLaunchKernel") &&
	       library_good(&client->report, hip->EventRecord(client->marched, client->kernels),
			    "hipEventRecord") &&
	       goes_on(client, IN_LOOP);
}

/* A copy to the second buffer, in a stream that waits for the kernel. It goes to VRAM, because
 * copies from there share an engine's queue with the loop, which would stand still behind it. */
static bool start_waiting(struct client *client)
{
	struct hip *hip = &client->hip;

	for (uint32_t i = 0; i < WORDS; i++)
		client->late[i] = pattern(client->generation, 1, i);
	return library_good(&client->report,
			    hip->StreamWaitEvent(client->waiting, client->marched, 0),
			    "hipStreamWaitEvent") &&
	       library_good(&client->report,
			    hip->MemcpyAsync(client->vram[1], client->late, WORDS * 4,
					     HIP_TO_DEVICE, client->waiting),
			    "a copy that waits") &&
	       library_good(&client->report, hip->EventRecord(client->waited, client->waiting),
			    "hipEventRecord");
}

static bool begin(void *arg)
{
	struct client *client = arg;

	client->generation++;
	for (unsigned int i = 2; i < BUFFERS; i++)
		if (!put(client, i))
			return false;
	return library_good(&client->report,
			    client->hip.Memset(client->filled, FILLED & 0xff, WORDS * 4),
			    "hipMemset") &&
	       library_good(&client->report, client->hip.StreamSynchronize(NULL),
			    "hipStreamSynchronize") &&
	       start_kernel(client) && start_waiting(client);
}

static bool end_loop(struct client *client)
{
	struct march_control *control = &client->page->control;

	if (!goes_on(client, control->rounds + MORE_ROUNDS))
		return false;
	if (client->hip.EventQuery(client->waited) != HIP_NOT_READY)
		return report_fail(&client->report, false, "a copy did not wait for the kernel");
	control->wanted = control->rounds + MORE_ROUNDS;
	return true;
}

static bool end_kernel(struct client *client)
{
	struct march_control *control = &client->page->control;
	uint64_t cells[MARCH_ITEMS];

	if (control->wanted == MARCH_ENDLESS && !end_loop(client))
		return false;
	if (!library_good(&client->report, client->hip.EventSynchronize(client->waited),
			  "hipEventSynchronize"))
		return false;
	if (control->starts != 1)
		return report_fail(&client->report, false, "the kernel has begun %u times",
				   control->starts);
	march_compute(control->rounds, cells);
	if (memcmp(cells, client->page->cells, sizeof(cells)) == 0)
		return true;
	return report_fail(&client->report, false, "the kernel has wrong results after %u rounds",
			   control->rounds);
}

static bool verify_buffers(struct client *client)
{
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (!library_good(&client->report,
				  client->hip.Memcpy(client->host, client->vram[i], WORDS * 4,
						     HIP_TO_HOST),
				  "a copy from VRAM") ||
		    !compare(client, client->host, i ? client->generation : 0, i, "VRAM"))
			return false;
	if (!library_good(&client->report,
			  client->hip.Memcpy(client->host, client->filled, WORDS * 4, HIP_TO_HOST),
			  "a copy from VRAM"))
		return false;
	for (uint32_t i = 0; i < WORDS; i++)
		if (client->host[i] != FILLED)
			return report_fail(&client->report, false,
					   "memory that was set: word %u is wrong", i);
	return true;
}

static bool verify(void *arg)
{
	struct client *client = arg;

	return end_kernel(client) && verify_buffers(client);
}

static bool tear_down(void *arg)
{
	struct client *client = arg;
	struct hip *hip = &client->hip;

	__atomic_store_n(&client->stop, true, __ATOMIC_RELEASE);
	if (pthread_join(client->loop, NULL))
		return false;
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (!library_good(&client->report, hip->Free(client->vram[i]), "hipFree"))
			return false;
	return library_good(&client->report, hip->EventDestroy(client->marched),
			    "hipEventDestroy") &&
	       library_good(&client->report, hip->EventDestroy(client->waited),
			    "hipEventDestroy") &&
	       library_good(&client->report, hip->EventDestroy(client->copied),
			    "hipEventDestroy") &&
	       library_good(&client->report, hip->StreamDestroy(client->kernels),
			    "hipStreamDestroy") &&
	       library_good(&client->report, hip->StreamDestroy(client->waiting),
			    "hipStreamDestroy") &&
	       library_good(&client->report, hip->StreamDestroy(client->copies),
			    "hipStreamDestroy") &&
	       library_good(&client->report, hip->HostFree(client->host), "hipHostFree") &&
	       library_good(&client->report, hip->ModuleUnload(client->module), "hipModuleUnload");
}

static const char *parse(int argc, char **argv, struct client *client)
{
	static const struct option options[] = {
		{ "log", required_argument, NULL, 'l' },
		{ "kernels", required_argument, NULL, 'k' },
		{ 0 },
	};
	const char *log = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			log = optarg;
		else if (option == 'k')
			client->code_object = optarg;
		else
			return NULL;
	}
	return optind == argc && client->code_object ? log : NULL;
}

int main(int argc, char **argv)
{
	static struct client client;
	const char *log = parse(argc, argv, &client);

	if (!log) {
		(void)fprintf(stderr, "usage: hip_client --log FILE --kernels CODE_OBJECT\n");
		return 2;
	}
	report_init(&client.report, log);
	return serve(&(struct serve){ &client.report, &client, set_up, begin, verify, tear_down });
}
