/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns the steps of the chain's model into packets, in batches, and compares snapshots that the
 * engine takes at the end of each pass with the model. What a step does stands in the model. */
#include "chain.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain_model.h"
#include "events.h"
#include "memory.h"
#include "pattern.h"
#include "sdma.h"

#define BATCH_STEPS  16u
#define PASS_BATCHES (CHAIN_CELLS / BATCH_STEPS)
#define DEPTH_MAX    64u
/* Every pass that ends in the ring has its own snapshot. */
#define SNAPSHOTS_MAX (DEPTH_MAX / PASS_BATCHES)
/* Data and slot of each step, a counter, filler, snapshot, signal and fence, and padding. */
#define BATCH_BYTES                                                                               \
	((BATCH_STEPS * 2 + 1) * SDMA_ATOMIC_BYTES + 4 * SDMA_COPY_BYTES + 2 * SDMA_FENCE_BYTES + \
	 SDMA_TRAP_BYTES + 2 * SDMA_PAD_BYTES)

struct snapshot {
	struct memory memory;
	struct chain_state expected;
	uint64_t pass;
	bool busy;
};

struct batch {
	struct sdma_mark mark;
	struct snapshot *snapshot; /* taken at its end, or NULL */
};

enum chain_request {
	CHAIN_RUN,
	CHAIN_VERIFY,
	CHAIN_STOP,
};

struct chain {
	struct report *report;
	const struct gpu *gpu;
	struct chain_options options;
	struct sdma_queue queue;
	struct waiter waiter;
	struct memory table; /* a struct chain_state, where the CPU does not reach */
	struct memory tape;
	struct memory filler[2];
	struct chain_model model;
	struct snapshot snapshots[SNAPSHOTS_MAX];
	unsigned int num_snapshots;
	struct batch batches[DEPTH_MAX];
	unsigned int first, outstanding;
	uint64_t packets;
	pthread_t thread;
	bool running;
	/* Between the thread and its owner. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum chain_request request;
	bool answered;
	int answer;
};

static void chain_put_step(struct chain *chain, const struct chain_step *step)
{
	struct chain_state *state = chain->table.address;
	uint8_t *to = state->table + step->to;

	switch (step->kind) {
	case CHAIN_SHIFT:
	case CHAIN_MIX:
		sdma_copy(&chain->queue, state->table + step->from, to, step->bytes);
		break;
	case CHAIN_INJECT:
		sdma_copy(&chain->queue, (uint8_t *)chain->tape.address + step->from, to,
			  step->bytes);
		break;
	case CHAIN_FILL:
		sdma_fill(&chain->queue, to, (uint8_t)step->value, step->bytes);
		break;
	case CHAIN_ADD:
		sdma_atomic_add(&chain->queue, to, step->value);
		break;
	}
	sdma_atomic_add(&chain->queue, &state->slots[step->cell], chain_slot_value(step));
	chain->packets += 2;
}

/* @failure: what a difference means. */
static int chain_match(struct chain *chain, const struct snapshot *snapshot, const char *failure)
{
	const uint8_t *got = snapshot->memory.address;
	const uint8_t *expected = (const uint8_t *)&snapshot->expected;
	const char *where = "slot";
	size_t at = 0, cell;

	if (memcmp(got, expected, sizeof(snapshot->expected)) == 0)
		return 0;
	while (got[at] == expected[at])
		at++;
	cell = at / sizeof(uint64_t);
	if (at >= offsetof(struct chain_state, table)) {
		where = "cell";
		cell = (at - offsetof(struct chain_state, table)) / CHAIN_CELL_BYTES;
	}
	return report_fail(chain->report, -EILSEQ,
			   "GPU %d: %s in pass %" PRIu64 ": %s %zu differs at byte %zu: "
			   "expected %02x, got %02x",
			   chain->gpu->index, failure, snapshot->pass, where, cell, at,
			   expected[at], got[at]);
}

/* A snapshot keeps its contents until the engine takes the next one. */
static int chain_check_snapshot(struct chain *chain, const struct snapshot *snapshot)
{
	return chain_match(chain, snapshot, "a snapshot has changed after it was taken");
}

static struct snapshot *chain_put_snapshot(struct chain *chain)
{
	struct snapshot *snapshot = &chain->snapshots[0];

	while (snapshot->busy)
		snapshot++;
	(void)chain_check_snapshot(chain, snapshot); /* the report keeps a failure */
	snapshot->busy = true;
	snapshot->pass = chain->model.next / CHAIN_CELLS - 1;
	memcpy(&snapshot->expected, &chain->model.state, sizeof(snapshot->expected));
	sdma_copy(&chain->queue, chain->table.address, snapshot->memory.address,
		  sizeof(snapshot->expected));
	chain->packets++;
	if (waiter_is_ready(&chain->waiter)) {
		waiter_expect(&chain->waiter);
		sdma_signal(&chain->queue, chain->waiter.event);
		chain->packets += 2;
	}
	return snapshot;
}

static bool chain_at_pass_end(const struct chain *chain)
{
	return chain->model.next % CHAIN_CELLS == 0;
}

static void chain_put_batch(struct chain *chain)
{
	unsigned int at = (chain->first + chain->outstanding) % DEPTH_MAX;
	struct batch *batch = &chain->batches[at];

	for (unsigned int i = 0; i < BATCH_STEPS; i++) {
		struct chain_step step;

		chain_model_next(&chain->model, &step);
		chain_put_step(chain, &step);
	}
	if (chain->options.filler_kib) {
		sdma_copy(&chain->queue, chain->filler[0].address, chain->filler[1].address,
			  chain->filler[1].size_bytes);
		chain->packets++;
	}
	if (chain->options.counter) {
		sdma_atomic_add(&chain->queue, chain->options.counter, 1);
		chain->packets++;
	}
	batch->snapshot = chain_at_pass_end(chain) ? chain_put_snapshot(chain) : NULL;
	batch->mark = sdma_submit(&chain->queue);
	chain->packets++;
	chain->outstanding++;
}

static int chain_compare(struct chain *chain, struct snapshot *snapshot)
{
	snapshot->busy = false;
	return chain_match(chain, snapshot, "chain broken (a packet was lost or repeated)");
}

static int chain_retire(struct chain *chain)
{
	struct batch *batch = &chain->batches[chain->first];
	int ret;

	ret = sdma_wait(&chain->queue, &batch->mark);
	if (ret == 0 && batch->snapshot)
		ret = chain_compare(chain, batch->snapshot);
	chain->first = (chain->first + 1) % DEPTH_MAX;
	chain->outstanding--;
	return ret;
}

/* The filler's target went through the engine in every batch; here it is looked at. */
static int chain_check_filler(struct chain *chain)
{
	struct pattern pattern = { .key = chain->options.key };
	struct memory *staging = &chain->snapshots[0].memory;
	size_t bytes = chain->filler[1].size_bytes;

	for (size_t at = 0; at < bytes; at += CHAIN_TAPE_BYTES) {
		size_t n = bytes - at < CHAIN_TAPE_BYTES ? bytes - at : CHAIN_TAPE_BYTES;
		struct pattern_mismatch wrong;
		int ret;

		ret = sdma_copy_now(&chain->queue, (char *)chain->filler[1].address + at,
				    staging->address, n);
		if (ret < 0)
			return ret;
		ret = pattern_check(&pattern, at, staging->address, n, &wrong);
		if (ret < 0)
			return report_fail(chain->report, ret,
					   "GPU %d: filler differs at 0x%" PRIx64,
					   chain->gpu->index, wrong.offset_bytes);
		chain->packets += 2;
	}
	memcpy(staging->address, &chain->snapshots[0].expected, CHAIN_TAPE_BYTES);
	return 0;
}

static int chain_drain(struct chain *chain)
{
	int ret = 0;

	while (ret == 0 && !chain_at_pass_end(chain)) {
		if (chain->outstanding == chain->options.depth)
			ret = chain_retire(chain);
		if (ret == 0)
			chain_put_batch(chain);
	}
	while (ret == 0 && chain->outstanding > 0)
		ret = chain_retire(chain);
	if (ret == 0)
		ret = sdma_check_idle(&chain->queue);
	if (ret == 0)
		ret = waiter_settle(&chain->waiter);
	for (unsigned int i = 0; ret == 0 && i < chain->num_snapshots; i++)
		ret = chain_check_snapshot(chain, &chain->snapshots[i]);
	if (ret == 0 && chain->options.filler_kib)
		ret = chain_check_filler(chain);
	return ret;
}

static enum chain_request chain_take_request(struct chain *chain)
{
	enum chain_request request;

	pthread_mutex_lock(&chain->lock);
	request = chain->request;
	pthread_mutex_unlock(&chain->lock);
	return request;
}

static void chain_answer(struct chain *chain, int answer)
{
	pthread_mutex_lock(&chain->lock);
	chain->request = CHAIN_RUN;
	chain->answered = true;
	chain->answer = answer;
	pthread_cond_broadcast(&chain->changed);
	pthread_mutex_unlock(&chain->lock);
}

/* After a failure the thread only answers. */
static void chain_answer_failure(struct chain *chain, int failure)
{
	for (;;) {
		enum chain_request request;

		pthread_mutex_lock(&chain->lock);
		while (chain->request == CHAIN_RUN)
			pthread_cond_wait(&chain->changed, &chain->lock);
		request = chain->request;
		pthread_mutex_unlock(&chain->lock);
		chain_answer(chain, failure);
		if (request == CHAIN_STOP)
			return;
	}
}

static void *chain_main(void *argument)
{
	struct chain *chain = argument;
	int ret = 0;

	while (ret == 0) {
		enum chain_request request = chain_take_request(chain);

		if (request != CHAIN_RUN) {
			ret = chain_drain(chain);
			if (ret < 0)
				break;
			chain_answer(chain, 0);
			if (request == CHAIN_STOP)
				return NULL;
		}
		while (chain->outstanding < chain->options.depth)
			chain_put_batch(chain);
		ret = chain_retire(chain);
		(void)usleep(chain->options.pace_us);
	}
	chain_answer_failure(chain, ret);
	return NULL;
}

static int chain_ask(struct chain *chain, enum chain_request request)
{
	int answer;

	pthread_mutex_lock(&chain->lock);
	chain->answered = false;
	chain->request = request;
	pthread_cond_broadcast(&chain->changed);
	while (!chain->answered)
		pthread_cond_wait(&chain->changed, &chain->lock);
	answer = chain->answer;
	pthread_mutex_unlock(&chain->lock);
	return answer;
}

static int chain_alloc_filler(struct chain *chain, const struct gpus *only)
{
	struct pattern pattern = { .key = chain->options.key };
	size_t bytes = (size_t)chain->options.filler_kib << 10;
	int ret = 0;

	if (!bytes)
		return 0;
	ret = memory_alloc(chain->report, MEMORY_GTT, bytes, chain->gpu, only, &chain->filler[0]);
	if (ret == 0)
		ret = memory_alloc(chain->report, MEMORY_VRAM_HIDDEN, bytes, chain->gpu, only,
				   &chain->filler[1]);
	if (ret == 0)
		pattern_fill(&pattern, 0, chain->filler[0].address, bytes);
	return ret;
}

static int chain_alloc_snapshots(struct chain *chain, size_t state_bytes, const struct gpus *only)
{
	chain->num_snapshots = (chain->options.depth + PASS_BATCHES - 1) / PASS_BATCHES;
	for (unsigned int i = 0; i < chain->num_snapshots; i++) {
		struct snapshot *snapshot = &chain->snapshots[i];
		int ret;

		ret = memory_alloc(chain->report, MEMORY_GTT, state_bytes, chain->gpu, only,
				   &snapshot->memory);
		if (ret < 0)
			return ret;
		snapshot->expected = chain->model.state;
		memcpy(snapshot->memory.address, &snapshot->expected, sizeof(snapshot->expected));
	}
	return 0;
}

static int chain_alloc(struct chain *chain)
{
	struct gpus only = memory_only(chain->gpu);
	size_t state_bytes = (sizeof(struct chain_state) + 4095) / 4096 * 4096;
	int ret;

	ret = memory_alloc(chain->report, MEMORY_VRAM_HIDDEN, state_bytes, chain->gpu, &only,
			   &chain->table);
	if (ret == 0)
		ret = memory_alloc(chain->report, MEMORY_GTT, CHAIN_TAPE_BYTES, chain->gpu, &only,
				   &chain->tape);
	if (ret == 0)
		ret = chain_alloc_snapshots(chain, state_bytes, &only);
	if (ret == 0)
		ret = chain_alloc_filler(chain, &only);
	return ret;
}

static int chain_open(struct chain *chain)
{
	size_t ring_bytes = 4096;
	int ret;

	while (ring_bytes < (chain->options.depth + 1) * BATCH_BYTES)
		ring_bytes *= 2;
	chain_model_init(&chain->model, chain->options.key);
	/* Rings of ROCm programs are user memory: it must be back before the queue runs. */
	ret = sdma_open(chain->report, chain->gpu, MEMORY_USERPTR, ring_bytes, &chain->queue);
	if (ret == 0)
		ret = chain_alloc(chain);
	if (ret == 0)
		ret = waiter_start(chain->report, "queue", &chain->waiter);
	if (ret < 0)
		return ret;

	memcpy(chain->tape.address, chain->model.tape, CHAIN_TAPE_BYTES);
	return sdma_copy_now(&chain->queue, chain->snapshots[0].memory.address,
			     chain->table.address, sizeof(chain->model.state));
}

static void chain_close(struct chain *chain)
{
	sdma_close(&chain->queue);
	waiter_stop(&chain->waiter);
	memory_free(chain->report, &chain->table);
	memory_free(chain->report, &chain->tape);
	memory_free(chain->report, &chain->filler[0]);
	memory_free(chain->report, &chain->filler[1]);
	for (unsigned int i = 0; i < chain->num_snapshots; i++)
		memory_free(chain->report, &chain->snapshots[i].memory);
	free(chain);
}

int chain_start(struct report *report, const struct gpu *gpu, const struct chain_options *options,
		struct chain **ret_chain)
{
	struct chain *chain = calloc(1, sizeof(*chain));
	int ret;

	if (!chain)
		return report_fail(report, -ENOMEM, "no memory for a chain");
	chain->report = report;
	chain->gpu = gpu;
	chain->options = *options;
	pthread_mutex_init(&chain->lock, NULL);
	pthread_cond_init(&chain->changed, NULL);
	ret = chain_open(chain);
	if (ret == 0) {
		ret = -pthread_create(&chain->thread, NULL, chain_main, chain);
		if (ret < 0)
			report_fail(report, ret, "cannot start the thread of a chain");
	}
	if (ret < 0) {
		chain_close(chain);
		return ret;
	}
	chain->running = true;
	*ret_chain = chain;
	return 0;
}

void chain_stop(struct chain *chain)
{
	if (!chain)
		return;
	if (chain->running) {
		(void)chain_ask(chain, CHAIN_STOP);
		pthread_join(chain->thread, NULL);
	}
	chain_close(chain);
}

int chain_verify(struct chain *chain, uint64_t *ret_packets)
{
	int ret = chain_ask(chain, CHAIN_VERIFY);

	if (ret == 0)
		*ret_packets = chain->packets;
	return ret;
}

uint64_t chain_in_flight(const struct chain *chain)
{
	uint64_t written = __atomic_load_n(&chain->queue.write_bytes, __ATOMIC_ACQUIRE);
	uint64_t read = __atomic_load_n(chain->queue.at.read, __ATOMIC_ACQUIRE);

	return written > read ? written - read : 0;
}
