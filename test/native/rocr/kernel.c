// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program on stock ROCr: kernels that clang has compiled from test/data/kernels/gfx90a.cl run on
 * the GPU, alone, behind barriers and in several queues. The arguments are the code object, and one
 * for another GPU. Ends with status 0 if the results are right. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocr.h"

#define ITEMS      1000u
#define GROUP      64u
#define SLOTS      64u
#define ROUNDS     200u
#define TURNS      10u
#define PATIENCE_S 20u

struct buffers {
	uint32_t *in, *out; /* of the CPU's pool, ITEMS * 4 words each */
	uint32_t *vram;
	void *arguments;
};

struct kernels {
	struct rocr rocr;
	hsa_executable_t executable;
	hsa_queue_t *queue, *other;
	hsa_signal_t done, go;
	struct buffers buffers;
};

/* A code object for another GPU. */
static bool refuses(struct kernels *kernels, const char *path)
{
	hsa_code_object_reader_t reader;
	hsa_executable_t executable;
	hsa_status_t status;

	if (!rocr_open_object(path, &reader) || !rocr_new_executable(&executable))
		return false;
	status = hsa_executable_load_agent_code_object(executable, kernels->rocr.gpus->agent,
						       reader, NULL, NULL);
	if (status == HSA_STATUS_SUCCESS)
		(void)printf("%s: was loaded\n", path);
	return status != HSA_STATUS_SUCCESS &&
	       rocr_good(hsa_executable_destroy(executable), path) &&
	       rocr_good(hsa_code_object_reader_destroy(reader), "reader");
}

static bool set_up(struct kernels *kernels, const char *path)
{
	struct rocr *rocr = &kernels->rocr;
	struct buffers *buffers = &kernels->buffers;

	return rocr_open(rocr) && rocr_load(rocr->gpus, path, &kernels->executable) &&
	       rocr_make_queue(rocr->gpus, SLOTS, &kernels->queue) &&
	       rocr_make_queue(rocr->gpus, SLOTS, &kernels->other) &&
	       rocr_allocate(&rocr->cpu, rocr->gpus, ITEMS * 16, &buffers->in) &&
	       rocr_allocate(&rocr->cpu, rocr->gpus, ITEMS * 16, &buffers->out) &&
	       rocr_allocate(rocr->gpus, rocr->gpus, ITEMS * 16, &buffers->vram) &&
	       rocr_allocate(&rocr->cpu, rocr->gpus, 4096, &buffers->arguments) &&
	       rocr_good(hsa_signal_create(1, 0, NULL, &kernels->done), "signal") &&
	       rocr_good(hsa_signal_create(1, 0, NULL, &kernels->go), "signal");
}

static bool dispatch(struct kernels *kernels, const char *name, uint32_t items, uint16_t group)
{
	hsa_kernel_dispatch_packet_t packet = {
		.setup = 1,
		.workgroup_size_x = group,
		.workgroup_size_y = 1,
		.workgroup_size_z = 1,
		.grid_size_x = items,
		.grid_size_y = 1,
		.grid_size_z = 1,
		.kernarg_address = kernels->buffers.arguments,
		.completion_signal = kernels->done,
	};

	if (!rocr_find_kernel(kernels->executable, kernels->rocr.gpus, name, &packet))
		return false;
	hsa_signal_store_relaxed(kernels->done, 1);
	rocr_submit(kernels->queue, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
	return true;
}

static void fill(struct buffers *buffers)
{
	for (uint32_t i = 0; i < ITEMS * 4; i++) {
		buffers->in[i] = (i + 1) * 2654435761u;
		buffers->out[i] = 0xdddddddd;
	}
}

static bool right(const char *name, uint32_t wrong)
{
	if (wrong)
		(void)printf("%s: %u wrong results\n", name, wrong);
	return !wrong;
}

static void set_addition(struct buffers *buffers)
{
	const void *arguments[] = { buffers->out, buffers->in, buffers->in + ITEMS,
				    (void *)(uintptr_t)ITEMS };

	fill(buffers);
	memcpy(buffers->arguments, arguments, sizeof(arguments));
}

static bool added(const char *name, const struct buffers *buffers)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < ITEMS; i++)
		wrong += buffers->out[i] != buffers->in[i] + buffers->in[i + ITEMS];
	return right(name, wrong + (buffers->out[ITEMS] != 0xdddddddd));
}

/* The last workgroup is not full. */
static bool adds(struct kernels *kernels)
{
	set_addition(&kernels->buffers);
	return dispatch(kernels, "add.kd", ITEMS, GROUP) &&
	       rocr_wait(kernels->done, PATIENCE_S, "add") && added("add", &kernels->buffers);
}

/* LDS, barriers of workgroups and an atomic. */
static bool reduces(struct kernels *kernels)
{
	struct buffers *buffers = &kernels->buffers;
	const void *arguments[] = { buffers->out, buffers->in, (void *)(uintptr_t)ITEMS };
	uint32_t sum = 0;

	fill(buffers);
	buffers->out[0] = 0;
	for (uint32_t i = 0; i < ITEMS; i++)
		sum += buffers->in[i];
	memcpy(buffers->arguments, arguments, sizeof(arguments));
	return dispatch(kernels, "reduce.kd", 1024, 256) &&
	       rocr_wait(kernels->done, PATIENCE_S, "reduce") &&
	       right("reduce", buffers->out[0] != sum);
}

/* As the kernel, with fused operations where clang has made them. */
static float mixed(const float *a, const float *b, float k, uint32_t item)
{
	float x = 0;

	for (uint32_t j = 0; j < 8; j++)
		x = fmaf(x, k, a[(item + j) & 63]) - b[j];
	return x > b[0] ? x : -x;
}

static bool computes_floats(struct kernels *kernels)
{
	struct buffers *buffers = &kernels->buffers;
	float *a = (float *)(void *)buffers->in, *b = a + GROUP, k = 1.25f, *out;
	uint32_t wrong = 0;
	struct {
		void *out, *a, *b;
		float k;
		uint32_t n;
	} arguments = { buffers->out, a, b, k, 8 };

	for (uint32_t i = 0; i < 2 * GROUP; i++)
		a[i] = (float)(int)(i * 37 % 101) - 50.5f;
	memcpy(buffers->arguments, &arguments, sizeof(arguments));
	if (!dispatch(kernels, "mix.kd", GROUP, GROUP) ||
	    !rocr_wait(kernels->done, PATIENCE_S, "mix"))
		return false;
	out = (float *)(void *)buffers->out;
	for (uint32_t i = 0; i < GROUP; i++)
		wrong += out[i] != mixed(a, b, k, i);
	return right("mix", wrong);
}

static void *sleep_until_done(void *arg)
{
	struct kernels *kernels = arg;

	return rocr_wait(kernels->done, PATIENCE_S, "asleep") ? kernels : NULL;
}

/* Queues take turns: when the other queue has run packets one after another, the first had turns.
 */
static bool let_queues_have_turns(struct kernels *kernels)
{
	hsa_barrier_and_packet_t packet = { .completion_signal = kernels->go };

	for (uint32_t i = 0; i < TURNS; i++) {
		hsa_signal_store_relaxed(kernels->go, 1);
		rocr_submit(kernels->other, &packet, HSA_PACKET_TYPE_BARRIER_AND);
		if (!rocr_wait(kernels->go, PATIENCE_S, "a turn"))
			return false;
	}
	return true;
}

/* A kernel behind a barrier that waits for the other queue's barrier, which waits for this program;
 * meanwhile a thread sleeps until the kernel is through. */
static bool waits_behind_barriers(struct kernels *kernels)
{
	hsa_barrier_and_packet_t first = { .dep_signal[2] = kernels->go };
	hsa_barrier_or_packet_t second = { .reserved0 = 0 };
	hsa_signal_t between;
	pthread_t thread;
	void *in_time = NULL;

	if (!rocr_good(hsa_signal_create(1, 0, NULL, &between), "signal"))
		return false;
	first.completion_signal = second.dep_signal[0] = between;
	set_addition(&kernels->buffers);
	rocr_submit(kernels->queue, &second, HSA_PACKET_TYPE_BARRIER_OR);
	if (!dispatch(kernels, "add.kd", ITEMS, GROUP) ||
	    pthread_create(&thread, NULL, sleep_until_done, kernels) ||
	    !let_queues_have_turns(kernels))
		return false;
	hsa_signal_store_relaxed(kernels->go, 1);
	rocr_submit(kernels->other, &first, HSA_PACKET_TYPE_BARRIER_AND);
	if (hsa_signal_load_scacquire(kernels->done) != 1)
		return right("a barrier did not wait", 1);
	hsa_signal_store_screlease(kernels->go, 0);
	return pthread_join(thread, &in_time) == 0 && in_time &&
	       rocr_good(hsa_signal_destroy(between), "signal") &&
	       added("behind barriers", &kernels->buffers);
}

/* More packets than the ring has room for, from the first to the last one after another. */
static bool counts_with_times(struct kernels *kernels)
{
	struct buffers *buffers = &kernels->buffers;
	const void *arguments[] = { buffers->out, (void *)(uintptr_t)1 };
	hsa_amd_profiling_dispatch_time_t time = { 0 };
	uint64_t *cells = (uint64_t *)(void *)buffers->out, sum = 5, last = 0;

	if (!rocr_good(hsa_amd_profiling_set_profiler_enabled(kernels->queue, 1), "profiling"))
		return false;
	cells[3] = sum;
	memcpy(buffers->arguments, arguments, sizeof(arguments));
	for (uint32_t i = 0; i < ROUNDS; i++, last = time.end) {
		sum = sum * 6364136223846793005ull + 3;
		if (!dispatch(kernels, "count.kd", GROUP, GROUP) ||
		    !rocr_wait(kernels->done, PATIENCE_S, "count") ||
		    !rocr_good(hsa_amd_profiling_get_dispatch_time(kernels->rocr.gpus->agent,
								   kernels->done, &time),
			       "time"))
			return false;
		if (time.start > time.end || time.start < last)
			return right("times", 1);
	}
	return right("count", cells[3] != sum);
}

/* VRAM is filled by a kernel of ROCr's own. */
static bool fills(struct kernels *kernels)
{
	struct buffers *buffers = &kernels->buffers;
	uint32_t wrong = 0;

	if (!rocr_good(hsa_amd_memory_fill(buffers->vram, 0x01234567, ITEMS), "fill") ||
	    !rocr_good(hsa_memory_copy(buffers->out, buffers->vram, ITEMS * 4), "copy"))
		return false;
	for (uint32_t i = 0; i < ITEMS; i++)
		wrong += buffers->out[i] != 0x01234567;
	return right("fill", wrong);
}

int main(int argc, char **argv)
{
	struct kernels kernels = { .queue = NULL };
	bool all_right;

	if (argc != 3 || !set_up(&kernels, argv[1]))
		return 1;
	all_right = adds(&kernels) && reduces(&kernels) && computes_floats(&kernels) &&
		    waits_behind_barriers(&kernels) && counts_with_times(&kernels) &&
		    fills(&kernels) && refuses(&kernels, argv[2]);
	all_right = all_right && rocr_good(hsa_signal_destroy(kernels.done), "signal") &&
		    rocr_good(hsa_signal_destroy(kernels.go), "signal") &&
		    rocr_good(hsa_queue_destroy(kernels.queue), "queue") &&
		    rocr_good(hsa_queue_destroy(kernels.other), "queue") &&
		    rocr_good(hsa_executable_destroy(kernels.executable), "executable");
	return all_right && rocr_good(hsa_shut_down(), "shut down") ? 0 : 1;
}
