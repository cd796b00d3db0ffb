// SPDX-License-Identifier: GPL-2.0-only
/* Runs the kernel "march" on a queue of its own, from before the dump until after the restore. */
#include "client_kernel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "march.h"

#define PAGE_BYTES  4096u
#define RING_BYTES  1024u /* only the first slot is used, so other things lie in the rest */
#define IN_LOOP     20u   /* rounds */
#define MORE_ROUNDS 100u
#define PATIENCE_MS 60000

struct page {
	struct raw_packet packet;
	_Alignas(128) volatile uint64_t read;
	_Alignas(64) volatile uint64_t write;
	_Alignas(64) struct raw_signal signal;
	struct march_arguments arguments;
	struct march_control control;
	_Alignas(256) char kernel[RAW_KERNEL_BYTES];
	uint64_t cells[MARCH_ITEMS];
};
_Static_assert(sizeof(struct page) == PAGE_BYTES, "one page");

static int complain(int ret, const char *what)
{
	(void)fprintf(stderr, "client: a kernel: %s: %s\n", what, strerror(-ret));
	return ret;
}

static int fill(struct page *page)
{
	struct raw_packet packet;
	int ret = raw_kernel_load("march", page->kernel, &packet);

	if (ret < 0)
		return complain(ret, "its code");
	for (uint32_t i = 0; i < MARCH_ITEMS; i++)
		page->cells[i] = march_first(i);
	raw_signal_init(&page->signal, 1);
	page->control = (struct march_control){ .wanted = UINT32_MAX };
	page->arguments =
		(struct march_arguments){ (uintptr_t)page->cells, (uintptr_t)&page->control };
	packet.workgroup[0] = MARCH_ITEMS;
	packet.grid[0] = MARCH_ITEMS;
	packet.kernarg = (uintptr_t)&page->arguments;
	packet.completion = (uintptr_t)&page->signal;
	page->packet = packet;
	page->read = 0;
	page->write = 1;
	return 0;
}

/* The write index counts when the queue comes to the hardware, so the doorbell need not be written.
 */
static int create(struct raw_process *process, const struct raw_gpu *gpu, struct page *page,
		  uint64_t waves, uint64_t waves_size)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = (uintptr_t)page,
		.ring_size = RING_BYTES,
		.read_pointer_address = (uintptr_t)&page->read,
		.write_pointer_address = (uintptr_t)&page->write,
		.eop_buffer_address = (uintptr_t)page,
		.eop_buffer_size = PAGE_BYTES,
		.ctx_save_restore_address = waves,
		.ctx_save_restore_size = (uint32_t)waves_size,
	};
	int ret = raw_aql_create_on(process, gpu, &args);

	return ret < 0 ? complain(ret, "CREATE_QUEUE") : 0;
}

/* A queue that has met a violation stops. */
static bool has_stopped(void)
{
	char violations[256];

	return simulator_read("violations", violations, sizeof(violations)) < 0 || atoi(violations);
}

static int await_loop(const struct march_control *control)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (control->rounds >= IN_LOOP)
			return 0;
		if (has_stopped())
			return complain(-EIO, "its queue has stopped");
		(void)usleep(1000);
	}
	return complain(-ETIME, "it does not run");
}

int client_kernel_start(struct raw_process *process, const struct raw_gpu *gpu, uint64_t page,
			uint64_t waves, uint64_t waves_size)
{
	struct page *at = (struct page *)(uintptr_t)page;
	int ret = fill(at);

	if (!ret)
		ret = create(process, gpu, at, waves, waves_size);
	return ret ? ret : await_loop(&at->control);
}

/* The kernel must have gone on from where it was: neither from its beginning, nor with other
 * values. */
static int compare(const struct page *page)
{
	uint64_t *cells = malloc(sizeof(page->cells));
	int ret = cells ? 0 : -ENOMEM;

	if (!ret && page->control.starts != 1)
		ret = complain(-EIO, "it began again");
	if (!ret) {
		march_compute(page->control.rounds, cells);
		if (memcmp(cells, page->cells, sizeof(page->cells)))
			ret = complain(-EIO, "wrong results");
	}
	free(cells);
	return ret;
}

static int await_end(const struct raw_signal *signal)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (__atomic_load_n(&signal->value, __ATOMIC_ACQUIRE) == 0)
			return 0;
		if (has_stopped())
			return complain(-EIO, "its queue has stopped");
		(void)usleep(1000);
	}
	return complain(-ETIME, "it does not end");
}

int client_kernel_finish(uint64_t page)
{
	struct page *at = (struct page *)(uintptr_t)page;
	uint32_t rounds = at->control.rounds;
	int ret;

	if (rounds < IN_LOOP)
		return complain(-EIO, "its rounds are lost");
	if (at->control.wanted == UINT32_MAX)
		at->control.wanted = rounds + MORE_ROUNDS;
	ret = await_end(&at->signal);
	return ret < 0 ? ret : compare(at);
}
