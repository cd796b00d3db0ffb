// SPDX-License-Identifier: GPL-2.0-only
/* Copies the contents of BOs between GPUs and image files, all GPUs at the same time, and logs the
 * progress. The caller chooses BOs and files, see kfd_jobs_init(). save.c and load.c copy one GPU.
 */
#include "content/content.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "content/load.h"
#include "content/save.h"
#include "content/sdma.h"
#include "content/slots.h"
#include "content/transfer.h"
#include "criu/log.h"
#include "kernel/memory_errors.h"
#include "kernel/render_node.h"

#define PROGRESS_S 2
#define MIB        1048576.0

struct worker {
	struct content_run *run;
	struct transfer transfer;
	pthread_t thread;
	/* When the contents were complete. */
	double end;
	/* Memory of the GPU has had an uncorrectable error during the load. */
	bool lost_memory;
};

struct content_run {
	/* A save, or a load if false. */
	bool save;
	struct transfer_plan plan;
	sem_t *gpu_limit;
	struct worker *workers;
	size_t num_workers;
	/* Workers whose thread could be started. */
	size_t num_started;
	/* Those without, whose work is still to be done. */
	size_t num_rest;
	double begin;
	pthread_mutex_t lock;
	pthread_cond_t worker_ended;
	/* Under the lock: workers that have not ended, and those that need their GPU. */
	size_t active, copying;
};

uint64_t content_size(const struct content_bo *bos, size_t num_bos)
{
	uint64_t size = 0;

	for (size_t i = 0; i < num_bos; i++)
		size += bos[i].size;
	return size;
}

static const char *slower_side(double copy_s, double storage_s)
{
	return copy_s > storage_s ? "the copy engine" : "storage";
}

static void report_progress(struct worker *worker, double seconds)
{
	const struct transfer_progress now = transfer_progress(&worker->transfer);
	const uint64_t total = worker->transfer.size;

	if (now.done_bytes == total)
		return;
	log_info("GPU 0x%04x: %s %" PRIu64 " of %" PRIu64 " MiB, %.1f MiB/s, limited by %s",
		 worker->transfer.job->gpu_id, worker->run->save ? "saved" : "loaded",
		 now.done_bytes >> 20, total >> 20, (double)now.done_bytes / MIB / seconds,
		 slower_side(now.copy_s, now.storage_s));
}

/* In microseconds. */
static uint64_t real_time(void)
{
	return (uint64_t)(clock_seconds(CLOCK_REALTIME) * 1e6);
}

/* CRIU may call this long after the contents were complete. */
static void report_done(struct worker *worker)
{
	struct content_job *job = worker->transfer.job;
	const struct slots *slots = &worker->transfer.slots;
	const struct transfer_progress end = transfer_progress(&worker->transfer);
	uint64_t bytes = worker->transfer.size;
	double seconds = worker->end - worker->run->begin;

	job->copy_us = (uint64_t)(end.copy_s * 1e6);
	job->storage_us = (uint64_t)(end.storage_s * 1e6);
	log_info("GPU 0x%04x: %s %zu BOs, %" PRIu64
		 " bytes in %.3f s, %.1f MiB/s, limited by %s, %u slots of %zu KiB",
		 job->gpu_id, worker->run->save ? "saved" : "loaded", job->num_bos, bytes, seconds,
		 (double)bytes / MIB / (seconds > 0 ? seconds : 1e-9),
		 slower_side(end.copy_s, end.storage_s), slots->count, slots->memory >> 10);
	if (!worker->run->save && !job->has_checksums)
		log_warn(
			"GPU 0x%04x: the contents were not verified: the image has no checksums that this plugin knows",
			job->gpu_id);
}

static int check_memory(const struct content_run *run)
{
	for (size_t i = 0; i < run->num_workers; i++) {
		if (run->workers[i].lost_memory)
			return log_error(
				-EIO,
				"GPU 0x%04x: lost memory during the load (an uncorrectable error), so the loaded contents may be wrong",
				run->workers[i].transfer.job->gpu_id);
	}
	return 0;
}

static int report(struct content_run *run)
{
	const struct transfer_error *error = &run->plan.error;
	int ret;

	if (error->ret < 0)
		return log_error(error->ret, "GPU 0x%04x: cannot %s BO %zu of %zu: %s",
				 error->job->gpu_id, run->save ? "save" : "load", error->bo,
				 error->job->num_bos, error->action);
	ret = check_memory(run);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < run->num_workers; i++)
		report_done(&run->workers[i]);
	return 0;
}

/* src/dump/gpu_watch.c does this for a save, from the pause on. */
static void watch_load(struct worker *worker)
{
	struct content_job *job = worker->transfer.job;
	struct memory_errors before = { 0 };
	uint64_t count = 0;

	(void)memory_errors_count(job->pci_device, &before);
	load_copy(&worker->transfer);
	job->errors_unknown = memory_errors_count_new(job->pci_device, &before, &count) < 0;
	worker->lost_memory = count > 0;
}

static void count_down(struct content_run *run, size_t *count)
{
	HOLD(&run->lock);
	--*count;
	(void)pthread_cond_signal(&run->worker_ended);
}

static void *run_worker(void *argument)
{
	struct worker *worker = argument;
	struct content_run *run = worker->run;
	struct content_job *job = worker->transfer.job;

	while (run->gpu_limit && sem_wait(run->gpu_limit) < 0)
		; /* EINTR is the only error. */
	/* content_stop() may have come meanwhile. */
	if (!transfer_has_stopped(&worker->transfer)) {
		if (run->save)
			save_copy(&worker->transfer);
		else
			watch_load(worker);
	}
	job->copied_us = real_time();
	if (run->gpu_limit)
		(void)sem_post(run->gpu_limit);
	count_down(run, &run->copying);
	if (run->save)
		save_finish(&worker->transfer);
	else
		load_finish(&worker->transfer);
	worker->end = now_seconds();
	job->end_us = real_time();
	count_down(run, &run->active);
	return NULL;
}

/* Only this thread writes to CRIU's log, which is not thread-safe. */
static void await_workers(struct content_run *run)
{
	struct timespec next;

	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	next.tv_sec += PROGRESS_S;
	HOLD(&run->lock);
	while (run->active) {
		if (pthread_cond_timedwait(&run->worker_ended, &run->lock, &next) != ETIMEDOUT)
			continue;
		for (size_t i = 0; i < run->num_workers; i++)
			report_progress(&run->workers[i], now_seconds() - run->begin);
		next.tv_sec += PROGRESS_S;
	}
}

static void start_workers(struct content_run *run)
{
	struct worker *worker = run->workers, *end = worker + run->num_workers;

	run->active = run->copying = run->num_workers;
	while (!run->plan.settings.one_thread && worker < end &&
	       !thread_start(&worker->thread, run_worker, worker))
		worker++;
	run->num_started = (size_t)(worker - run->workers);
	run->num_rest = run->num_workers - run->num_started;
}

/* A cgroup may limit the threads: runc restores in the cgroup of the container. This thread does
 * the work of those that could not be started. */
static void run_rest(struct content_run *run)
{
	size_t rest = run->num_rest;

	if (rest && !run->plan.settings.one_thread)
		log_warn(
			"contents: cannot start more threads, so %zu of %zu GPUs are copied one after the other; a higher pids.max makes this faster",
			rest, run->num_workers);
	while (rest)
		(void)run_worker(&run->workers[run->num_workers - rest--]);
	run->num_rest = 0;
}

static void init_locks(struct content_run *run)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&run->worker_ended, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	(void)pthread_mutex_init(&run->lock, NULL);
	(void)pthread_mutex_init(&run->plan.error.lock, NULL);
}

/* The transfers that share the processors: those of this run, and those of others with its limit
 * that run now. */
static size_t count_transfers(const struct content_run *run)
{
	size_t count = run->num_workers;
	int idle = CONTENT_GPUS_AT_ONCE;

	if (!run->gpu_limit)
		return count;
	(void)sem_getvalue(run->gpu_limit, &idle);
	count += CONTENT_GPUS_AT_ONCE - (size_t)idle;
	return count < CONTENT_GPUS_AT_ONCE ? count : CONTENT_GPUS_AT_ONCE;
}

/* GPUs without BOs need no worker. */
static int add_workers(struct content_run *run, struct content_job *jobs, size_t num_jobs)
{
	const uint64_t begin_us = real_time();

	run->workers = calloc(num_jobs + 1, sizeof(*run->workers));
	if (!run->workers)
		return -ENOMEM;
	for (size_t i = 0; i < num_jobs; i++) {
		struct worker *worker = &run->workers[run->num_workers];

		if (!jobs[i].num_bos)
			continue;
		jobs[i].begin_us = begin_us;
		worker->run = run;
		transfer_init(&worker->transfer, &run->plan, &jobs[i],
			      content_size(jobs[i].bos, jobs[i].num_bos));
		run->num_workers++;
	}
	return 0;
}

static void free_run(struct content_run *run)
{
	for (size_t i = 0; i < run->num_workers; i++)
		transfer_done(&run->workers[i].transfer);
	free(run->workers);
	(void)pthread_mutex_destroy(&run->lock);
	(void)pthread_mutex_destroy(&run->plan.error.lock);
	(void)pthread_cond_destroy(&run->worker_ended);
	free(run);
}

static int start(bool save, struct content_job *jobs, size_t num_jobs,
		 const struct content_settings *settings, sem_t *gpu_limit,
		 struct content_run **ret_run)
{
	struct content_run *run = calloc(1, sizeof(*run));
	int ret;

	if (!run)
		return -ENOMEM;
	run->plan.settings = *settings;
	if (!run->plan.settings.staging_bytes)
		run->plan.settings.staging_bytes = slots_choose_bytes();
	run->gpu_limit = gpu_limit;
	run->begin = now_seconds();
	run->save = save;
	init_locks(run);
	ret = add_workers(run, jobs, num_jobs);
	if (ret < 0) {
		free_run(run);
		return ret;
	}
	run->plan.num_transfers = count_transfers(run);
	start_workers(run);
	*ret_run = run;
	return 0;
}

int content_start_save(struct content_job *jobs, size_t num_jobs,
		       const struct content_settings *settings, sem_t *gpu_limit,
		       struct content_run **ret_run)
{
	return start(true, jobs, num_jobs, settings, gpu_limit, ret_run);
}

int content_start_load(struct content_job *jobs, size_t num_jobs,
		       const struct content_settings *settings, sem_t *gpu_limit,
		       struct content_run **ret_run)
{
	return start(false, jobs, num_jobs, settings, gpu_limit, ret_run);
}

/* Blocks of a disk are reserved at once, those of tmpfs come with the contents. */
static uint64_t missing_room(struct worker *worker)
{
	const uint64_t total = worker->transfer.size;
	const uint64_t left = total - transfer_progress(&worker->transfer).done_bytes;
	struct stat stat;
	uint64_t blocks;

	if (fstat(worker->transfer.job->image_fd, &stat) < 0)
		return left;
	blocks = (uint64_t)stat.st_blocks * S_BLKSIZE;
	if (blocks >= total)
		return 0;
	return left < total - blocks ? left : total - blocks;
}

uint64_t content_missing_room(const struct content_run *run)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < run->num_workers; i++)
		bytes += missing_room(&run->workers[i]);
	return bytes;
}

static void join_workers(struct content_run *run)
{
	for (size_t i = 0; i < run->num_started; i++)
		(void)pthread_join(run->workers[i].thread, NULL);
}

int content_await_copies(struct content_run *run)
{
	run_rest(run);
	HOLD(&run->lock);
	while (run->copying)
		(void)pthread_cond_wait(&run->worker_ended, &run->lock);
	return __atomic_load_n(&run->plan.error.stop, __ATOMIC_RELAXED) ? -EIO : 0;
}

int content_finish(struct content_run *run)
{
	int ret;

	run_rest(run);
	await_workers(run);
	join_workers(run);
	ret = report(run);
	free_run(run);
	return ret;
}

void content_stop(struct content_run *run)
{
	transfer_stop(&run->plan, NULL, -ECANCELED, "", 0);
}

void content_cancel(struct content_run *run)
{
	content_stop(run);
	join_workers(run);
	free_run(run);
}

static int run_jobs(bool save, struct content_job *jobs, size_t num_jobs,
		    const struct content_settings *settings)
{
	struct content_run *run;
	int ret = start(save, jobs, num_jobs, settings, NULL, &run);

	if (ret < 0)
		return log_error(ret, "contents: cannot %s", save ? "save" : "load");
	return content_finish(run);
}

int content_save(struct content_job *jobs, size_t num_jobs, const struct content_settings *settings)
{
	return run_jobs(true, jobs, num_jobs, settings);
}

int content_load(struct content_job *jobs, size_t num_jobs, const struct content_settings *settings)
{
	return run_jobs(false, jobs, num_jobs, settings);
}

int content_try_gpu(uint32_t render_minor)
{
	struct sdma *gpu = NULL;
	int ret = render_node_check_names();

	if (!ret)
		ret = sdma_open(render_minor, 1, CONTENT_ALIGNMENT, &gpu);
	if (ret < 0)
		return ret;
	sdma_close(gpu);
	return 0;
}

/* Restored tasks add to the sums at the same time. */
static void add(uint64_t *sum, uint64_t value)
{
	(void)__atomic_add_fetch(sum, value, __ATOMIC_RELAXED);
}

/* The first time, or the last one. */
static void keep(uint64_t *kept_us, uint64_t us, bool first)
{
	uint64_t old = __atomic_load_n(kept_us, __ATOMIC_RELAXED);

	while ((!old || (us < old) == first) &&
	       !__atomic_compare_exchange_n(kept_us, &old, us, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		; /* Another task was faster, and @old is its time. */
}

static void add_job(struct content_totals *totals, const struct content_job *job)
{
	uint32_t number = job->render_minor % CONTENT_MINORS;

	(void)__atomic_or_fetch(&totals->minors[number / 64], 1ULL << number % 64,
				__ATOMIC_RELAXED);
	if (!job->num_bos)
		return;
	add(&totals->bytes, content_size(job->bos, job->num_bos));
	add(&totals->copy_us, job->copy_us);
	add(&totals->storage_us, job->storage_us);
	add(&totals->unchecked, !job->has_checksums);
	add(&totals->unwatched, job->errors_unknown);
	keep(&totals->begin_us, job->begin_us, true);
	keep(&totals->copied_us, job->copied_us, false);
	keep(&totals->end_us, job->end_us, false);
}

void content_totals_add(struct content_totals *totals, const struct content_job *jobs,
			size_t num_jobs)
{
	for (size_t i = 0; i < num_jobs; i++)
		add_job(totals, &jobs[i]);
}

static unsigned int count_gpus(const struct content_totals *totals)
{
	unsigned int count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(totals->minors); i++)
		count += (unsigned int)__builtin_popcountll(totals->minors[i]);
	return count;
}

static void print_pause(const struct content_totals *totals, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	if (totals->drained_s > 0)
		length = (size_t)snprintf(text, size, "; waited %.3f s for the end of kernels",
					  totals->drained_s);
	if (totals->stopped_s > 0 && length < size)
		(void)snprintf(text + length, size - length,
			       "; queues stopped for %.3f s, %.3f s of them to copy",
			       totals->stopped_s,
			       (double)(totals->copied_us - totals->begin_us) / 1e6);
}

void content_totals_log(const struct content_totals *totals, bool saved, bool checked)
{
	double seconds = (double)(totals->end_us - totals->begin_us) / 1e6;
	unsigned int gpus = count_gpus(totals);
	const char *checks = saved ? "with checksums" : "verified";
	char rate[64] = "no contents", pause[160];

	if (!totals->processes)
		return;
	if (!checked || totals->unchecked)
		checks = saved ? "without checksums" : "not verified";
	if (totals->bytes)
		(void)snprintf(rate, sizeof(rate), "%.1f MiB/s, limited by %s",
			       (double)totals->bytes / MIB / (seconds > 0 ? seconds : 1e-6),
			       slower_side((double)totals->copy_us, (double)totals->storage_us));
	print_pause(totals, pause, sizeof(pause));
	log_info("%s: %" PRIu64 " processes on %u GPUs, %.1f MiB of contents in %.3f s, %s, %s%s",
		 saved ? "dump" : "restore", totals->processes, gpus, (double)totals->bytes / MIB,
		 seconds, rate, checks, pause);
	if (totals->unwatched)
		log_warn(
			"%s: the driver does not count memory errors of its GPUs, so errors during the copies go unnoticed",
			saved ? "dump" : "restore");
}
