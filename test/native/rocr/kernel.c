// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program on stock ROCr: kernels that clang has compiled from test/data/kernels/gfx90a.cl run on
 * the GPU, alone, behind barriers and in several queues. The arguments are the code object, and one
 * for another GPU. Ends with status 0 if the results are right. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rocr.h"

#define ITEMS  1000u
#define GROUP  64u
#define SLOTS  64u
#define ROUNDS 200u
#define TURNS  10u

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

static bool open_object(const char *path, hsa_code_object_reader_t *ret_reader)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		(void)printf("%s: cannot be opened\n", path);
		return false;
	}
	return good(hsa_code_object_reader_create_from_file(fd, ret_reader), path) &&
	       close(fd) == 0;
}

static bool new_executable(hsa_executable_t *ret_executable)
{
	return good(hsa_executable_create_alt(HSA_PROFILE_BASE,
					      HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL,
					      ret_executable),
		    "executable");
}

static bool load(struct kernels *kernels, const char *path)
{
	hsa_code_object_reader_t reader;

	return open_object(path, &reader) && new_executable(&kernels->executable) &&
	       good(hsa_executable_load_agent_code_object(
			    kernels->executable, kernels->rocr.gpu.agent, reader, NULL, NULL),
		    path) &&
	       good(hsa_executable_freeze(kernels->executable, NULL), "freeze") &&
	       good(hsa_code_object_reader_destroy(reader), "reader");
}

/* A code object for another GPU. */
static bool refuses(struct kernels *kernels, const char *path)
{
	hsa_code_object_reader_t reader;
	hsa_executable_t executable;
	hsa_status_t status;

	if (!open_object(path, &reader) || !new_executable(&executable))
		return false;
	status = hsa_executable_load_agent_code_object(executable, kernels->rocr.gpu.agent, reader,
						       NULL, NULL);
	if (status == HSA_STATUS_SUCCESS)
		(void)printf("%s: was loaded\n", path);
	return status != HSA_STATUS_SUCCESS && good(hsa_executable_destroy(executable), path) &&
	       good(hsa_code_object_reader_destroy(reader), "reader");
}

static bool make_queue(struct kernels *kernels, hsa_queue_t **ret_queue)
{
	return good(hsa_queue_create(kernels->rocr.gpu.agent, SLOTS, HSA_QUEUE_TYPE_MULTI, NULL,
				     NULL, UINT32_MAX, UINT32_MAX, ret_queue),
		    "queue");
}

static bool set_up(struct kernels *kernels, const char *path)
{
	struct rocr *rocr = &kernels->rocr;
	struct buffers *buffers = &kernels->buffers;

	return rocr_open(rocr) && load(kernels, path) && make_queue(kernels, &kernels->queue) &&
	       make_queue(kernels, &kernels->other) &&
	       rocr_allocate(rocr, &rocr->cpu, ITEMS * 16, &buffers->in) &&
	       rocr_allocate(rocr, &rocr->cpu, ITEMS * 16, &buffers->out) &&
	       rocr_allocate(rocr, &rocr->gpu, ITEMS * 16, &buffers->vram) &&
	       rocr_allocate(rocr, &rocr->cpu, 4096, &buffers->arguments) &&
	       good(hsa_signal_create(1, 0, NULL, &kernels->done), "signal") &&
	       good(hsa_signal_create(1, 0, NULL, &kernels->go), "signal");
}

static bool find_kernel(struct kernels *kernels, const char *name,
			hsa_kernel_dispatch_packet_t *packet)
{
	hsa_executable_symbol_t symbol;

	return good(hsa_executable_get_symbol_by_name(kernels->executable, name,
						      &kernels->rocr.gpu.agent, &symbol),
		    name) &&
	       good(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
						   &packet->kernel_object),
		    "kernel object") &&
	       good(hsa_executable_symbol_get_info(
			    symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
			    &packet->group_segment_size),
		    "group segment") &&
	       good(hsa_executable_symbol_get_info(
			    symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
			    &packet->private_segment_size),
		    "private segment");
}

static uint16_t header_of(hsa_packet_type_t type)
{
	return (uint16_t)(type | 1 << HSA_PACKET_HEADER_BARRIER |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

/* The header last: then the packet is the processor's. */
static void submit(hsa_queue_t *queue, const void *packet, hsa_packet_type_t type)
{
	uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
	char *slot = (char *)queue->base_address + index % queue->size * 64;

	memcpy(slot + 2, (const char *)packet + 2, 62);
	__atomic_store_n((uint16_t *)(void *)slot, header_of(type), __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
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

	if (!find_kernel(kernels, name, &packet))
		return false;
	hsa_signal_store_relaxed(kernels->done, 1);
	submit(kernels->queue, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
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
	return dispatch(kernels, "add.kd", ITEMS, GROUP) && rocr_wait(kernels->done, "add") &&
	       added("add", &kernels->buffers);
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
	return dispatch(kernels, "reduce.kd", 1024, 256) && rocr_wait(kernels->done, "reduce") &&
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
	if (!dispatch(kernels, "mix.kd", GROUP, GROUP) || !rocr_wait(kernels->done, "mix"))
		return false;
	out = (float *)(void *)buffers->out;
	for (uint32_t i = 0; i < GROUP; i++)
		wrong += out[i] != mixed(a, b, k, i);
	return right("mix", wrong);
}

static void *sleep_until_done(void *arg)
{
	struct kernels *kernels = arg;

	return rocr_wait(kernels->done, "asleep") ? kernels : NULL;
}

/* Queues take turns: when the other queue has run packets one after another, the first had turns.
 */
static bool let_queues_have_turns(struct kernels *kernels)
{
	hsa_barrier_and_packet_t packet = { .completion_signal = kernels->go };

	for (uint32_t i = 0; i < TURNS; i++) {
		hsa_signal_store_relaxed(kernels->go, 1);
		submit(kernels->other, &packet, HSA_PACKET_TYPE_BARRIER_AND);
		if (!rocr_wait(kernels->go, "a turn"))
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

	if (!good(hsa_signal_create(1, 0, NULL, &between), "signal"))
		return false;
	first.completion_signal = second.dep_signal[0] = between;
	set_addition(&kernels->buffers);
	submit(kernels->queue, &second, HSA_PACKET_TYPE_BARRIER_OR);
	if (!dispatch(kernels, "add.kd", ITEMS, GROUP) ||
	    pthread_create(&thread, NULL, sleep_until_done, kernels) ||
	    !let_queues_have_turns(kernels))
		return false;
	hsa_signal_store_relaxed(kernels->go, 1);
	submit(kernels->other, &first, HSA_PACKET_TYPE_BARRIER_AND);
	if (hsa_signal_load_scacquire(kernels->done) != 1)
		return right("a barrier did not wait", 1);
	hsa_signal_store_screlease(kernels->go, 0);
	return pthread_join(thread, &in_time) == 0 && in_time &&
	       good(hsa_signal_destroy(between), "signal") &&
	       added("behind barriers", &kernels->buffers);
}

/* More packets than the ring has room for, from the first to the last one after another. */
static bool counts_with_times(struct kernels *kernels)
{
	struct buffers *buffers = &kernels->buffers;
	const void *arguments[] = { buffers->out, (void *)(uintptr_t)1 };
	hsa_amd_profiling_dispatch_time_t time = { 0 };
	uint64_t *cells = (uint64_t *)(void *)buffers->out, sum = 5, last = 0;

	if (!good(hsa_amd_profiling_set_profiler_enabled(kernels->queue, 1), "profiling"))
		return false;
	cells[3] = sum;
	memcpy(buffers->arguments, arguments, sizeof(arguments));
	for (uint32_t i = 0; i < ROUNDS; i++, last = time.end) {
		sum = sum * 6364136223846793005ull + 3;
		if (!dispatch(kernels, "count.kd", GROUP, GROUP) ||
		    !rocr_wait(kernels->done, "count") ||
		    !good(hsa_amd_profiling_get_dispatch_time(kernels->rocr.gpu.agent,
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

	if (!good(hsa_amd_memory_fill(buffers->vram, 0x01234567, ITEMS), "fill") ||
	    !good(hsa_memory_copy(buffers->out, buffers->vram, ITEMS * 4), "copy"))
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
	all_right = all_right && good(hsa_signal_destroy(kernels.done), "signal") &&
		    good(hsa_signal_destroy(kernels.go), "signal") &&
		    good(hsa_queue_destroy(kernels.queue), "queue") &&
		    good(hsa_queue_destroy(kernels.other), "queue") &&
		    good(hsa_executable_destroy(kernels.executable), "executable");
	return all_right && good(hsa_shut_down(), "shut down") ? 0 : 1;
}
