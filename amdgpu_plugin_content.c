// SPDX-License-Identifier: GPL-2.0-only
/* Moves the contents of BOs between GPUs and image files. Knows no KFD and no CRIU but its log; which
 * BOs and which file is said by the caller. */
#include "amdgpu_plugin_content.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_sdma.h"
#include "amdgpu_plugin_util.h"

#define PAGE 4096u
/* Slots large enough that the cost of a command buffer vanishes, and so many that one can be filled
 * by the engine, one written to storage, and one wait for each. */
#define SLOT_SIZE_MAX (8u << 20)
#define SLOTS_MAX     4u

/* What one slot is being used for. */
struct range {
	struct gpu_piece *pieces;
	size_t num_pieces;
	/* BOs from the first one up to (not including) this are done once the slot is. */
	size_t ended_bos;
	uint64_t size;
	uint64_t file_offset;
	bool in_flight;
};

struct worker;

/* The two directions: what happens to a slot's memory before its copies start and after they end. */
struct direction {
	const char *verb;
	const char *done;
	enum gpu_direction gpu;
	int (*before)(struct worker *worker, unsigned int slot);
	int (*after)(struct worker *worker, unsigned int slot);
};

struct worker {
	const struct content_job *job;
	const struct content_limits *limits;
	const struct direction *direction;
	struct gpu *gpu;
	unsigned int num_slots;
	size_t slot_size;
	struct range *ranges;
	/* One a BO; imported while some range needs it. */
	struct gpu_bo *imported;
	size_t num_released;
	/* Where the next range begins. */
	size_t bo;
	uint64_t bo_offset;
	uint64_t file_offset;

	pthread_t thread;
	bool started;
	int ret;
	const char *action;
	size_t failed_bo;
};

uint64_t content_size(const struct content_bo *bos, size_t num_bos)
{
	uint64_t size = 0;

	for (size_t i = 0; i < num_bos; i++)
		size += bos[i].size;
	return size;
}

/* Notes what failed, for the line that the starter of the thread prints. */
static int fail(struct worker *worker, int ret, const char *action, size_t bo)
{
	worker->action = action;
	worker->failed_bo = bo;
	return ret;
}

static int write_slot(struct worker *worker, unsigned int slot)
{
	const struct range *range = &worker->ranges[slot];
	int ret = pwrite_full(worker->job->image_fd, gpu_slot_memory(worker->gpu, slot),
			      range->size, range->file_offset);

	return ret < 0 ? fail(worker, ret, "write to the image", range->ended_bos) : 0;
}

static int read_slot(struct worker *worker, unsigned int slot)
{
	const struct range *range = &worker->ranges[slot];
	int ret = pread_full(worker->job->image_fd, gpu_slot_memory(worker->gpu, slot), range->size,
			     range->file_offset);

	return ret < 0 ? fail(worker, ret, "read from the image", range->ended_bos) : 0;
}

static int no_storage(struct worker *worker, unsigned int slot)
{
	(void)worker;
	(void)slot;
	return 0;
}

static const struct direction saving = {
	"save", "saved", GPU_BO_TO_SLOT, no_storage, write_slot,
};

static const struct direction loading = {
	"load", "loaded", GPU_SLOT_TO_BO, read_slot, no_storage,
};

static int import_current(struct worker *worker)
{
	const struct content_bo *bo = &worker->job->bos[worker->bo];
	int ret;

	if (worker->imported[worker->bo].bo)
		return 0;
	ret = gpu_bo_import(worker->gpu, bo->dmabuf_fd, bo->size, &worker->imported[worker->bo]);
	return ret < 0 ? fail(worker, ret, "import the dma-buf", worker->bo) : 0;
}

/* Takes the next part of the stream, at most a slot, into the slot's range. */
static int gather(struct worker *worker, unsigned int slot)
{
	const struct content_job *job = worker->job;
	struct range *range = &worker->ranges[slot];

	range->num_pieces = 0;
	range->size = 0;
	range->file_offset = worker->file_offset;
	while (worker->bo < job->num_bos && range->size < worker->slot_size) {
		uint64_t left = job->bos[worker->bo].size - worker->bo_offset;
		uint64_t room = worker->slot_size - range->size;
		uint64_t size = left < room ? left : room;
		int ret = import_current(worker);

		if (ret < 0)
			return ret;
		range->pieces[range->num_pieces++] = (struct gpu_piece){
			.bo = &worker->imported[worker->bo],
			.offset = worker->bo_offset,
			.slot_offset = range->size,
			.size = size,
		};
		range->size += size;
		worker->bo_offset += size;
		if (worker->bo_offset == job->bos[worker->bo].size) {
			worker->bo++;
			worker->bo_offset = 0;
		}
	}
	range->ended_bos = worker->bo;
	worker->file_offset += range->size;
	return 0;
}

static int start(struct worker *worker, unsigned int slot)
{
	struct range *range = &worker->ranges[slot];
	int ret;

	ret = gather(worker, slot);
	if (ret < 0)
		return ret;
	ret = worker->direction->before(worker, slot);
	if (ret < 0)
		return ret;
	ret = gpu_submit(worker->gpu, slot, worker->direction->gpu, range->pieces,
			 range->num_pieces);
	if (ret < 0)
		return fail(worker, ret, "start a copy", range->ended_bos);
	range->in_flight = true;
	return 0;
}

static int finish(struct worker *worker, unsigned int slot)
{
	struct range *range = &worker->ranges[slot];
	int ret;

	if (!range->in_flight)
		return 0;
	ret = gpu_wait(worker->gpu, slot, worker->limits->copy_timeout_s);
	range->in_flight = false;
	if (ret == -ETIME)
		return fail(worker, ret, "a copy does not finish", range->ended_bos);
	if (ret < 0)
		return fail(worker, ret, "wait for a copy", range->ended_bos);
	ret = worker->direction->after(worker, slot);
	if (ret < 0)
		return ret;
	/* Ranges end in the order in which they began. */
	while (worker->num_released < range->ended_bos)
		gpu_bo_release(&worker->imported[worker->num_released++]);
	return 0;
}

/* Slots take turns; each is finished just before it is used again, and all at the end. */
static int run_stream(struct worker *worker)
{
	unsigned int slot = 0;
	int ret = 0;

	while (!ret && worker->bo < worker->job->num_bos) {
		ret = finish(worker, slot);
		if (!ret)
			ret = start(worker, slot);
		slot = (slot + 1) % worker->num_slots;
	}
	for (unsigned int i = 0; !ret && i < worker->num_slots; i++)
		ret = finish(worker, (slot + i) % worker->num_slots);
	return ret;
}

static uint64_t round_to_pages(uint64_t size)
{
	return (size + PAGE - 1) / PAGE * PAGE;
}

/* Divides the allowed memory into slots, no more of it than the stream fills. */
static void choose_slots(struct worker *worker)
{
	uint64_t total = content_size(worker->job->bos, worker->job->num_bos);
	uint64_t budget = worker->limits->staging_bytes / PAGE * PAGE;
	uint64_t size;

	if (budget < PAGE)
		budget = PAGE;
	if (budget > total)
		budget = round_to_pages(total);
	size = budget / SLOTS_MAX / PAGE * PAGE;
	if (size < PAGE)
		size = PAGE;
	if (size > SLOT_SIZE_MAX)
		size = SLOT_SIZE_MAX;
	worker->slot_size = size;
	worker->num_slots = (unsigned int)(budget / size);
	if (worker->num_slots > SLOTS_MAX)
		worker->num_slots = SLOTS_MAX;
}

static int set_up(struct worker *worker)
{
	int ret;

	choose_slots(worker);
	worker->file_offset = worker->job->file_offset;
	worker->imported = calloc(worker->job->num_bos, sizeof(*worker->imported));
	worker->ranges = calloc(worker->num_slots, sizeof(*worker->ranges));
	if (!worker->imported || !worker->ranges)
		return fail(worker, -ENOMEM, "allocate", 0);
	for (unsigned int i = 0; i < worker->num_slots; i++) {
		worker->ranges[i].pieces =
			calloc(worker->slot_size / PAGE, sizeof(*worker->ranges[i].pieces));
		if (!worker->ranges[i].pieces)
			return fail(worker, -ENOMEM, "allocate", 0);
	}
	ret = gpu_open(worker->job->render_minor, worker->num_slots, worker->slot_size,
		       &worker->gpu);
	return ret < 0 ? fail(worker, ret, "open the copy engine", 0) : 0;
}

/* Copies still under way after an error must not find their buffers gone. There is no use in waiting for
 * those of an engine that hangs: with their file the kernel ends them. */
static void drain(struct worker *worker)
{
	for (unsigned int i = 0; worker->ranges && i < worker->num_slots; i++) {
		if (worker->ranges[i].in_flight && worker->ret != -ETIME)
			(void)gpu_wait(worker->gpu, i, worker->limits->copy_timeout_s);
	}
}

static void tear_down(struct worker *worker)
{
	drain(worker);
	for (size_t i = worker->num_released; worker->imported && i < worker->job->num_bos; i++)
		gpu_bo_release(&worker->imported[i]);
	gpu_close(worker->gpu);
	for (unsigned int i = 0; worker->ranges && i < worker->num_slots; i++)
		free(worker->ranges[i].pieces);
	free(worker->ranges);
	free(worker->imported);
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	worker->ret = set_up(worker);
	if (!worker->ret)
		worker->ret = run_stream(worker);
	tear_down(worker);
	return NULL;
}

/* CRIU's signals are for CRIU's thread. The result belongs to the thread once it runs. */
static void start_thread(struct worker *worker)
{
	sigset_t all, old;
	int ret;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&worker->thread, NULL, work, worker);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	worker->started = !ret;
	if (ret < 0)
		worker->ret = fail(worker, ret, "start a thread", 0);
}

static int report(const struct worker *worker, double seconds)
{
	const struct content_job *job = worker->job;
	uint64_t bytes = content_size(job->bos, job->num_bos);

	if (worker->ret < 0)
		return log_error(worker->ret, "GPU 0x%04x: cannot %s BO %zu of %zu: %s", job->gpu_id,
				 worker->direction->verb, worker->failed_bo, job->num_bos,
				 worker->action);
	log_info("GPU 0x%04x: %s %zu BOs, %" PRIu64 " bytes in %.3f s, %.1f MiB/s, %u slots of %zu KiB",
		 job->gpu_id, worker->direction->done, job->num_bos,
		 bytes, seconds, (double)bytes / 1048576.0 / (seconds > 0 ? seconds : 1e-9),
		 worker->num_slots, worker->slot_size >> 10);
	return 0;
}

static int run_jobs(const struct content_job *jobs, size_t num_jobs,
		    const struct content_limits *limits, const struct direction *direction)
{
	_cleanup_free_ struct worker *workers = NULL;
	double begin = now_seconds();
	int ret = 0;

	if (!num_jobs)
		return 0;
	workers = calloc(num_jobs, sizeof(*workers));
	if (!workers)
		return log_error(-ENOMEM, "contents: cannot %s", direction->verb);
	for (size_t i = 0; i < num_jobs; i++) {
		workers[i].job = &jobs[i];
		workers[i].limits = limits;
		workers[i].direction = direction;
		if (jobs[i].num_bos)
			start_thread(&workers[i]);
	}
	for (size_t i = 0; i < num_jobs; i++) {
		if (workers[i].started)
			(void)pthread_join(workers[i].thread, NULL);
	}
	for (size_t i = 0; i < num_jobs; i++) {
		int failed = jobs[i].num_bos ? report(&workers[i], now_seconds() - begin) : 0;

		if (!ret)
			ret = failed;
	}
	return ret;
}

int content_save(const struct content_job *jobs, size_t num_jobs,
		 const struct content_limits *limits)
{
	return run_jobs(jobs, num_jobs, limits, &saving);
}

int content_load(const struct content_job *jobs, size_t num_jobs,
		 const struct content_limits *limits)
{
	return run_jobs(jobs, num_jobs, limits, &loading);
}
