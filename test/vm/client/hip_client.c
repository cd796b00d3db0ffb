// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock HIP: streams, events, copies and kernels on the first GPU. At a dump a kernel
 * is in the middle of its loop, and a stream waits for it. README.md has its options, signals and
 * log lines. */
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
#include "options.h"
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
	void *vram[BUFFERS], *filled;
	uint32_t *host, *late;
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

	if (!GOOD(client, hip.SetDevice(0)))
		return NULL;
	while (!__atomic_load_n(&client->stop, __ATOMIC_ACQUIRE)) {
		memset(client->loop_host, 0, WORDS * 4);
		if (!GOOD(client, hip.MemcpyAsync(client->loop_host, client->vram[0], WORDS * 4,
						  HIP_TO_HOST, client->copies)) ||
		    !GOOD(client, hip.EventRecord(client->copied, client->copies)) ||
		    !GOOD(client, hip.EventSynchronize(client->copied)) ||
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
	return GOOD(client,
		    hip.Memcpy(client->vram[buffer], client->host, WORDS * 4, HIP_TO_DEVICE));
}

static bool make_streams(struct client *client)
{
	return GOOD(client, hip.StreamCreate(&client->kernels)) &&
	       GOOD(client, hip.StreamCreate(&client->waiting)) &&
	       GOOD(client, hip.StreamCreate(&client->copies)) &&
	       GOOD(client, hip.EventCreate(&client->marched)) &&
	       GOOD(client, hip.EventCreate(&client->waited)) &&
	       GOOD(client, hip.EventCreate(&client->copied));
}

static bool host_memory(struct client *client, void *ret_memory, size_t size)
{
	void *memory;

	if (!GOOD(client, hip.HostMalloc(&memory, size, HIP_HOST_COHERENT)))
		return false;
	memcpy(ret_memory, &memory, sizeof(memory));
	return true;
}

static bool allocate(struct client *client)
{
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (!GOOD(client, hip.Malloc(&client->vram[i], WORDS * 4)))
			return false;
	return GOOD(client, hip.Malloc(&client->filled, WORDS * 4)) &&
	       host_memory(client, &client->host, WORDS * 4) &&
	       host_memory(client, &client->late, WORDS * 4) &&
	       host_memory(client, &client->loop_host, WORDS * 4) &&
	       host_memory(client, &client->page, sizeof(*client->page));
}

static bool set_up(void *arg)
{
	struct client *client = arg;

	return hip_open(&client->report, &client->hip) && GOOD(client, hip.Init(0)) &&
	       GOOD(client, hip.SetDevice(0)) && make_streams(client) && allocate(client) &&
	       GOOD(client, hip.ModuleLoad(&client->module, client->code_object)) &&
	       GOOD(client, hip.ModuleGetFunction(&client->march, client->module, "march")) &&
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
	void *cells = client->page->cells, *control = &client->page->control;
	void *arguments[] = { &cells, &control };

	for (uint32_t i = 0; i < MARCH_ITEMS; i++)
		client->page->cells[i] = march_first(i);
	client->page->control = (struct march_control){ .wanted = march_wanted() };
	return GOOD(client, hip.ModuleLaunchKernel(client->march, 1, 1, 1, MARCH_ITEMS, 1, 1, 0,
						   client->kernels, arguments, NULL)) &&
	       GOOD(client, hip.EventRecord(client->marched, client->kernels)) &&
	       goes_on(client, IN_LOOP);
}

/* A copy to the second buffer, in a stream that waits for the kernel. It goes to VRAM, because
 * copies from there share an engine's queue with the loop, which would stand still behind it. */
static bool start_waiting(struct client *client)
{
	for (uint32_t i = 0; i < WORDS; i++)
		client->late[i] = pattern(client->generation, 1, i);
	return GOOD(client, hip.StreamWaitEvent(client->waiting, client->marched, 0)) &&
	       GOOD(client, hip.MemcpyAsync(client->vram[1], client->late, WORDS * 4, HIP_TO_DEVICE,
					    client->waiting)) &&
	       GOOD(client, hip.EventRecord(client->waited, client->waiting));
}

static bool begin(void *arg)
{
	struct client *client = arg;

	client->generation++;
	for (unsigned int i = 2; i < BUFFERS; i++)
		if (!put(client, i))
			return false;
	return GOOD(client, hip.Memset(client->filled, FILLED & 0xff, WORDS * 4)) &&
	       GOOD(client, hip.StreamSynchronize(NULL)) && start_kernel(client) &&
	       start_waiting(client);
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
	if (!GOOD(client, hip.EventSynchronize(client->waited)))
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
		if (!GOOD(client,
			  hip.Memcpy(client->host, client->vram[i], WORDS * 4, HIP_TO_HOST)) ||
		    !compare(client, client->host, i ? client->generation : 0, i, "VRAM"))
			return false;
	if (!GOOD(client, hip.Memcpy(client->host, client->filled, WORDS * 4, HIP_TO_HOST)))
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

	__atomic_store_n(&client->stop, true, __ATOMIC_RELEASE);
	if (pthread_join(client->loop, NULL))
		return false;
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (!GOOD(client, hip.Free(client->vram[i])))
			return false;
	return GOOD(client, hip.EventDestroy(client->marched)) &&
	       GOOD(client, hip.EventDestroy(client->waited)) &&
	       GOOD(client, hip.EventDestroy(client->copied)) &&
	       GOOD(client, hip.StreamDestroy(client->kernels)) &&
	       GOOD(client, hip.StreamDestroy(client->waiting)) &&
	       GOOD(client, hip.StreamDestroy(client->copies)) &&
	       GOOD(client, hip.HostFree(client->host)) &&
	       GOOD(client, hip.ModuleUnload(client->module));
}

int main(int argc, char **argv)
{
	static struct client client;
	const struct choice choices[] = {
		{ "--log", .text = &client.report.path, .is_needed = true },
		{ "--kernels", .text = &client.code_object, .is_needed = true },
		{ 0 },
	};

	(void)argc;
	if (!options_parse(argv, choices))
		return 2;
	report_init(&client.report, client.report.path);
	return serve(&(struct serve){ &client.report, &client, set_up, begin, verify, tear_down });
}
