/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs the kernel "march" until it has done its rounds, or a verification ends its loop by a word
 * in memory. */
#include "compute.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "march.h"
#include "memory.h"
#include "raw_aql.h"

#define PAGE_BYTES  4096u
#define IN_LOOP     5u /* rounds */
#define MORE_ROUNDS 5u
/* The sleeps of the waits are counted: the clock goes on while the process is frozen. */
#define STEP_NS    1000000
#define WAIT_STEPS 60000

/* What the queue, its packets and the kernel reach. */
struct compute_page {
	_Alignas(64) uint64_t read, write;
	_Alignas(64) struct raw_signal done;
	struct march_arguments arguments;
	struct march_control control;
	_Alignas(256) char kernel[RAW_KERNEL_BYTES];
	uint64_t cells[MARCH_ITEMS];
};
_Static_assert(sizeof(struct compute_page) <= PAGE_BYTES, "one page");

struct compute {
	struct report *report;
	const struct gpu *gpu;
	struct memory ring, memory;
	struct compute_page *page;
	struct raw_packet packet;
	HsaQueueResource queue;
};

static bool has_rounds(const struct compute *compute, uint32_t rounds)
{
	return compute->page->control.rounds >= rounds;
}

static bool has_ended(const struct compute *compute, uint32_t unused)
{
	(void)unused;
	return __atomic_load_n(&compute->page->done.value, __ATOMIC_ACQUIRE) == 0;
}

static int await(const struct compute *compute,
		 bool (*is_so)(const struct compute *compute, uint32_t number), uint32_t number,
		 const char *what)
{
	const struct timespec step = { .tv_nsec = STEP_NS };

	for (int i = 0; !is_so(compute, number); i++) {
		if (i == WAIT_STEPS)
			return report_fail(
				compute->report, -ETIME, "GPU %d: the kernel %s after %u rounds",
				compute->gpu->index, what, compute->page->control.rounds);
		(void)nanosleep(&step, NULL);
	}
	return 0;
}

static int compute_make(struct compute *compute)
{
	struct gpus only = memory_only(compute->gpu);
	struct compute_page *page;
	HSAKMT_STATUS status;
	int ret;

	ret = memory_alloc(compute->report, MEMORY_GTT, PAGE_BYTES, compute->gpu, &only,
			   &compute->ring);
	if (ret == 0)
		ret = memory_alloc(compute->report, MEMORY_GTT, PAGE_BYTES, compute->gpu, &only,
				   &compute->memory);
	if (ret < 0)
		return ret;
	page = compute->page = compute->memory.address;
	memset(page, 0, sizeof(*page));
	for (uint32_t i = 0; i < RAW_AQL_SLOTS; i++)
		((struct raw_packet *)compute->ring.address)[i] =
			(struct raw_packet){ .header = RAW_AQL_INVALID };
	ret = raw_kernel_load("march", page->kernel, &compute->packet);
	if (ret < 0)
		return report_fail(compute->report, ret, "no code of the kernel");
	compute->queue.Queue_read_ptr_aql = &page->read;
	compute->queue.Queue_write_ptr_aql = &page->write;
	status = hsaKmtCreateQueue(compute->gpu->node, HSA_QUEUE_COMPUTE_AQL, 100,
				   HSA_QUEUE_PRIORITY_NORMAL, compute->ring.address, PAGE_BYTES,
				   NULL, &compute->queue);
	return status ? report_fail(compute->report, -EIO,
				    "GPU %d: cannot create a compute queue: %d",
				    compute->gpu->index, status)
		      : 0;
}

int compute_new(struct report *report, const struct gpu *gpu, struct compute **ret_compute)
{
	struct compute *compute = calloc(1, sizeof(*compute));
	int ret;

	if (!compute)
		return report_fail(report, -ENOMEM, "no memory");
	*ret_compute = compute;
	compute->report = report;
	compute->gpu = gpu;
	ret = compute_make(compute);
	return ret < 0 ? ret : compute_begin(compute);
}

void compute_free(struct compute *compute)
{
	if (!compute)
		return;
	if (compute->queue.QueueDoorBell && hsaKmtDestroyQueue(compute->queue.QueueId))
		report_fail(compute->report, -EIO, "GPU %d: cannot destroy the compute queue",
			    compute->gpu->index);
	memory_free(compute->report, &compute->memory);
	memory_free(compute->report, &compute->ring);
	free(compute);
}

static void compute_dispatch(struct compute *compute)
{
	struct compute_page *page = compute->page;
	uint64_t index = page->write;
	struct raw_packet *slot =
		(struct raw_packet *)compute->ring.address + index % RAW_AQL_SLOTS;
	struct raw_packet packet = compute->packet;

	packet.workgroup[0] = MARCH_ITEMS;
	packet.grid[0] = MARCH_ITEMS;
	packet.kernarg = (uintptr_t)&page->arguments;
	packet.completion = (uintptr_t)&page->done;
	memcpy((char *)slot + sizeof(slot->header), (const char *)&packet + sizeof(slot->header),
	       sizeof(*slot) - sizeof(slot->header));
	__atomic_store_n(&slot->header, packet.header, __ATOMIC_RELEASE);
	__atomic_store_n(&page->write, index + 1, __ATOMIC_RELEASE);
	__atomic_store_n(compute->queue.Queue_DoorBell_aql, index, __ATOMIC_SEQ_CST);
}

int compute_begin(struct compute *compute)
{
	struct compute_page *page;

	if (!compute)
		return 0;
	page = compute->page;
	for (uint32_t i = 0; i < MARCH_ITEMS; i++)
		page->cells[i] = march_first(i);
	raw_signal_init(&page->done, 1);
	page->control = (struct march_control){ .wanted = march_wanted() };
	page->arguments =
		(struct march_arguments){ (uintptr_t)page->cells, (uintptr_t)&page->control };
	compute_dispatch(compute);
	return await(compute, has_rounds, IN_LOOP, "does not begin, or stands still");
}

static int compute_compare(const struct compute *compute)
{
	const struct compute_page *page = compute->page;
	uint64_t cells[MARCH_ITEMS];

	if (page->control.starts != 1 || page->control.rounds != page->control.wanted)
		return report_fail(
			compute->report, -EILSEQ,
			"GPU %d: the kernel has begun %u times, and done %u rounds of %u",
			compute->gpu->index, page->control.starts, page->control.rounds,
			page->control.wanted);
	march_compute(page->control.rounds, cells);
	if (memcmp(cells, page->cells, sizeof(cells)) == 0)
		return 0;
	return report_fail(compute->report, -EILSEQ,
			   "GPU %d: the kernel has wrong results after %u rounds",
			   compute->gpu->index, page->control.rounds);
}

static int compute_end_loop(struct compute *compute)
{
	struct march_control *control = &compute->page->control;
	int ret = await(compute, has_rounds, control->rounds + MORE_ROUNDS, "stands still");

	if (ret == 0)
		control->wanted = control->rounds + MORE_ROUNDS;
	return ret;
}

int compute_verify(struct compute *compute)
{
	int ret = 0;

	if (!compute)
		return 0;
	if (compute->page->control.wanted == MARCH_ENDLESS)
		ret = compute_end_loop(compute);
	if (ret == 0)
		ret = await(compute, has_ended, 0, "does not end");
	return ret < 0 ? ret : compute_compare(compute);
}
