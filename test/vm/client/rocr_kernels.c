// SPDX-License-Identifier: GPL-2.0-only
/* Kernels that run over a dump. */
#include "rocr_kernels.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "march.h"
#include "rocr_host.h"

#define SLOTS       64u
#define IN_LOOP     5u /* rounds */
#define MORE_ROUNDS 5u
#define COUNT_ITEMS 64u
#define COUNTS      3u
#define PATIENCE_S  100u
#define PAGE        4096u

/* What the kernels reach, in the CPU's pool. */
struct page {
	struct march_arguments march;
	struct march_control control;
	struct {
		uint64_t cells, rounds;
	} count;
};

struct rocr_kernels {
	const struct rocr_place *place;
	unsigned int gpu;
	hsa_executable_t executable;
	hsa_queue_t *loop, *behind;
	hsa_signal_t marched, counted;
	struct page *page;
	struct rocr_host march_cells, count_cells;
};

bool rocr_kernels_open(const struct rocr *rocr, unsigned int gpu, const char *path,
		       struct rocr_kernels **ret_kernels)
{
	struct rocr_kernels *kernels = calloc(1, sizeof(*kernels));

	if (!kernels)
		return rocr_say("no memory");
	*ret_kernels = kernels;
	kernels->place = &rocr->gpus[gpu];
	kernels->gpu = gpu;
	return rocr_load(kernels->place, path, &kernels->executable) &&
	       rocr_make_queue(kernels->place, SLOTS, &kernels->loop) &&
	       rocr_make_queue(kernels->place, SLOTS, &kernels->behind) &&
	       rocr_allocate(&rocr->cpu, kernels->place, sizeof(*kernels->page), &kernels->page) &&
	       rocr_host_lock(kernels->place, MARCH_ITEMS * 8, &kernels->march_cells) &&
	       rocr_host_share(kernels->place, PAGE, &kernels->count_cells) &&
	       rocr_good(hsa_signal_create(1, 0, NULL, &kernels->marched), "signal") &&
	       rocr_good(hsa_signal_create(1, 0, NULL, &kernels->counted), "signal");
}

/* One workgroup. */
static bool dispatch(struct rocr_kernels *kernels, hsa_queue_t *queue, const char *name,
		     uint16_t items, void *arguments, hsa_signal_t done)
{
	hsa_kernel_dispatch_packet_t packet = {
		.setup = 1,
		.workgroup_size_x = items,
		.workgroup_size_y = 1,
		.workgroup_size_z = 1,
		.grid_size_x = items,
		.grid_size_y = 1,
		.grid_size_z = 1,
		.kernarg_address = arguments,
		.completion_signal = done,
	};

	if (!rocr_find_kernel(kernels->executable, kernels->place, name, &packet))
		return false;
	hsa_signal_store_relaxed(done, 1);
	rocr_submit(queue, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
	return true;
}

/* Waits until the kernel has done more rounds. */
static bool goes_on(const struct rocr_kernels *kernels, uint32_t rounds)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (kernels->page->control.rounds < rounds) {
		if (time(NULL) > end)
			return rocr_say("GPU %u: the kernel stands still after %u rounds",
					kernels->gpu, kernels->page->control.rounds);
		(void)usleep(1000);
	}
	return true;
}

static bool begin_loop(struct rocr_kernels *kernels)
{
	struct page *page = kernels->page;
	uint64_t *cells = kernels->march_cells.memory;

	for (uint32_t i = 0; i < MARCH_ITEMS; i++)
		cells[i] = march_first(i);
	page->control = (struct march_control){ .wanted = march_wanted() };
	page->march = (struct march_arguments){ (uintptr_t)kernels->march_cells.mapped,
						(uintptr_t)&page->control };
	return dispatch(kernels, kernels->loop, "march.kd", MARCH_ITEMS, &page->march,
			kernels->marched) &&
	       goes_on(kernels, IN_LOOP);
}

bool rocr_kernels_begin(struct rocr_kernels *kernels, hsa_signal_t go)
{
	hsa_barrier_and_packet_t barrier = { .dep_signal[0] = go };
	struct page *page = kernels->page;
	uint64_t *cells = kernels->count_cells.memory;

	for (uint32_t i = 0; i < COUNT_ITEMS; i++)
		cells[i] = march_first(i);
	page->count.cells = (uintptr_t)kernels->count_cells.mapped;
	page->count.rounds = COUNTS;
	rocr_submit(kernels->behind, &barrier, HSA_PACKET_TYPE_BARRIER_AND);
	return dispatch(kernels, kernels->behind, "count.kd", COUNT_ITEMS, &page->count,
			kernels->counted) &&
	       begin_loop(kernels);
}

static bool marched_right(const struct rocr_kernels *kernels)
{
	const struct page *page = kernels->page;
	uint64_t cells[MARCH_ITEMS];

	if (page->control.starts != 1)
		return rocr_say("GPU %u: the kernel has begun %u times", kernels->gpu,
				page->control.starts);
	march_compute(page->control.rounds, cells);
	if (memcmp(cells, kernels->march_cells.memory, sizeof(cells)) == 0)
		return true;
	return rocr_say("GPU %u: the kernel has wrong results after %u rounds", kernels->gpu,
			page->control.rounds);
}

bool rocr_kernels_verify_loop(struct rocr_kernels *kernels)
{
	struct march_control *control = &kernels->page->control;

	if (control->wanted == MARCH_ENDLESS) {
		if (!goes_on(kernels, control->rounds + MORE_ROUNDS))
			return false;
		control->wanted = control->rounds + MORE_ROUNDS;
	}
	return rocr_wait(kernels->marched, PATIENCE_S, "the kernel's end") &&
	       marched_right(kernels);
}

/* As the kernel. */
static uint64_t count(uint32_t item)
{
	uint64_t sum = march_first(item);

	for (uint64_t round = 0; round < COUNTS; round++)
		sum = sum * 6364136223846793005ull + round + item;
	return sum;
}

bool rocr_kernels_verify_behind(struct rocr_kernels *kernels)
{
	const uint64_t *cells = kernels->count_cells.memory;

	if (!rocr_wait(kernels->counted, PATIENCE_S, "the kernel behind a barrier"))
		return false;
	for (uint32_t i = 0; i < COUNT_ITEMS; i++) {
		if (cells[i] != count(i))
			return rocr_say("GPU %u: the kernel behind a barrier has wrong results",
					kernels->gpu);
	}
	return true;
}

bool rocr_kernels_close(struct rocr_kernels *kernels)
{
	bool good = rocr_good(hsa_queue_destroy(kernels->loop), "queue") &&
		    rocr_good(hsa_queue_destroy(kernels->behind), "queue") &&
		    rocr_good(hsa_executable_destroy(kernels->executable), "executable") &&
		    rocr_good(hsa_signal_destroy(kernels->marched), "signal") &&
		    rocr_good(hsa_signal_destroy(kernels->counted), "signal") &&
		    rocr_host_unlock(&kernels->march_cells) &&
		    rocr_host_unshare(&kernels->count_cells) &&
		    rocr_good(hsa_amd_memory_pool_free(kernels->page), "free");

	free(kernels);
	return good;
}
