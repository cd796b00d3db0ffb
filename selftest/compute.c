/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs the kernel "march" until it has done its rounds, or a verification ends its loop by a word
 * in memory. */
#include "compute.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aql.h"
#include "march.h"
#include "march_code.h"

#define IN_LOOP     5u /* rounds */
#define MORE_ROUNDS 5u
/* The sleeps of the waits are counted: the clock goes on while the process is frozen. */
#define STEP_US    1000
#define WAIT_STEPS 60000

/* What the queue, its packets and the kernel reach. */
struct compute_page {
	_Alignas(64) struct aql_pointers pointers;
	_Alignas(64) struct raw_signal done;
	struct march_arguments arguments;
	struct march_control control;
	_Alignas(256) char kernel[RAW_KERNEL_BYTES];
	uint64_t cells[MARCH_ITEMS];
};
_Static_assert(sizeof(struct compute_page) <= AQL_PAGE_BYTES, "one page");

struct compute {
	struct report *report;
	const struct gpu *gpu;
	struct aql aql;
	struct compute_page *page;
	struct raw_packet packet;
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
	for (int i = 0; !is_so(compute, number); i++) {
		if (i == WAIT_STEPS)
			return report_fail(
				compute->report, -ETIME, "GPU %d: the kernel %s after %u rounds",
				compute->gpu->index, what, compute->page->control.rounds);
		(void)usleep(STEP_US);
	}
	return 0;
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
	ret = aql_open(report, gpu, &compute->aql);
	if (ret < 0)
		return ret;
	compute->page = compute->aql.page.address;
	compute->packet = raw_kernel_place(&march_code, compute->page->kernel);
	return compute_begin(compute);
}

void compute_free(struct compute *compute)
{
	if (!compute)
		return;
	aql_close(&compute->aql, compute->gpu);
	free(compute);
}

static void compute_dispatch(struct compute *compute)
{
	struct compute_page *page = compute->page;
	struct raw_packet packet = compute->packet;

	packet.workgroup[0] = MARCH_ITEMS;
	packet.grid[0] = MARCH_ITEMS;
	packet.kernarg = (uintptr_t)&page->arguments;
	packet.completion = (uintptr_t)&page->done;
	aql_put(&compute->aql, &packet);
	aql_ring(&compute->aql);
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
