// SPDX-License-Identifier: GPL-2.0-only
/* Compares the contents of all BOs with their checksums. Several threads sum up parts of BOs. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/content.h"
#include "contents.h"
#include "criu/log.h"
#include "host.h"
#include "image/image.h"
#include "images.h"
#include "text.h"
#include "tool.h"
#include "verify.h"
#include "verify_archive.h"
#include "verify_files.h"
#include "verify_images.h"

#define PIECE (1u << 20)
/* The most of a BO that is one part. */
#define PART_MAX    (64ull << 20)
#define THREADS_MAX 8

/* A part of a BO. */
struct piece_of_work {
	const struct contents_piece *bo;
	/* In the BO. */
	uint64_t offset;
	uint64_t size;
	/* The checksum of this part. */
	uint64_t sum;
	/* 0, or -errno of a read. */
	int result;
};

/* All BOs of one process. */
struct verification {
	struct piece_of_work *work;
	size_t count;
	size_t num_bos;
	uint64_t size;
	/* Of all processes. */
	const struct verify_totals *totals;
	atomic_size_t next;
	atomic_uint_fast64_t done;
	/* The threads that have not ended, and a wake-up for the end of the last. */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	size_t running;
};

static int sum_up(struct verification *run, struct piece_of_work *work)
{
	const struct content_job *job = work->bo->job;
	_cleanup_free_ void *piece = malloc(PIECE);
	int ret = piece ? 0 : -ENOMEM;

	for (uint64_t at = 0; !ret && at < work->size;) {
		size_t size = work->size - at < PIECE ? (size_t)(work->size - at) : PIECE;
		uint64_t offset = work->offset + at;

		ret = pread_full(job->image_fd, piece, size, work->bo->offset + offset);
		if (!ret)
			work->sum += checksum_pages(piece, size, offset / CONTENT_ALIGNMENT);
		at += size;
		(void)atomic_fetch_add(&run->done, size);
	}
	return ret;
}

static void *verify_parts(void *argument)
{
	struct verification *run = argument;
	size_t i;

	while ((i = atomic_fetch_add(&run->next, 1)) < run->count)
		run->work[i].result = sum_up(run, &run->work[i]);
	(void)pthread_mutex_lock(&run->lock);
	run->running--;
	(void)pthread_cond_signal(&run->ended);
	(void)pthread_mutex_unlock(&run->lock);
	return NULL;
}

void verify_show_progress(const struct verify_totals *totals, uint64_t done)
{
	char now[16], all[16];

	if (!totals->shows_progress)
		return;
	(void)fprintf(stderr, "\rverified %s of %s", text_size(totals->bytes + done, now),
		      text_size(totals->all_bytes, all));
}

void verify_end_progress(const struct verify_totals *totals)
{
	if (totals->shows_progress)
		(void)fprintf(stderr, "\r%*s\r", 60, "");
}

/* The lock is held. Shows the progress until all threads have ended. */
static void await_threads(struct verification *run)
{
	while (run->running) {
		struct timespec until;

		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += VERIFY_PROGRESS_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&run->ended, &run->lock, &until);
		verify_show_progress(run->totals, atomic_load(&run->done));
	}
	verify_end_progress(run->totals);
}

static size_t choose_threads(size_t num_parts)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t count = processors > 0 ? (size_t)processors : 1;

	count = count < THREADS_MAX ? count : THREADS_MAX;
	return count < num_parts ? count : num_parts;
}

static int run_threads(struct verification *run)
{
	pthread_t threads[THREADS_MAX];
	size_t wanted = choose_threads(run->count), count = 0;
	int ret = 0;

	(void)pthread_mutex_lock(&run->lock);
	while (count < wanted && !ret) {
		ret = thread_start(&threads[count], verify_parts, run);
		count += !ret;
	}
	run->running += count;
	await_threads(run);
	(void)pthread_mutex_unlock(&run->lock);
	for (size_t i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	return count ? 0 : ret;
}

/* Adds the parts of a BO. */
static void add_parts(struct verification *run, const struct contents_piece *bo)
{
	struct piece_of_work part = { .bo = bo };

	for (; part.offset < bo->size; part.offset += part.size) {
		part.size = bo->size - part.offset < PART_MAX ? bo->size - part.offset : PART_MAX;
		run->work[run->count++] = part;
	}
	run->size += bo->size;
	run->num_bos++;
}

static void add_bos(const struct contents *contents, struct verification *run,
		    struct verify_totals *totals)
{
	for (size_t i = 0; i < contents->count; i++) {
		const struct contents_piece *bo = &contents->pieces[i];

		if (!bo->job->has_checksums)
			totals->num_unchecked++;
		else
			add_parts(run, bo);
	}
}

int verify_report_bo(int id, const CriuKfd *kfd, const struct contents_piece *piece, int result)
{
	const KfdBoEntry *bo = kfd->bo_entries[piece->index];
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, piece->job->gpu_id);
	return log_error(result,
			 "image %s: BO %" PRIu32 " (VA 0x%" PRIx64 ", %" PRIu64
			 " bytes, at offset %" PRIu64 ") of process %" PRIu32 ": %s",
			 name, piece->index, bo->addr, bo->size, piece->offset, kfd->pid,
			 result == -EBADMSG ? "its contents are not those that were saved"
					    : "cannot read it");
}

uint64_t verify_expect(const struct contents *contents, const struct contents_piece *bo)
{
	return contents->jobs.by_index[bo->index]->checksum;
}

/* Names the first BO that differs. */
static int report(const struct tool_kfd *kfd, const struct contents *contents,
		  const struct verification *run)
{
	size_t i = 0;

	while (i < run->count) {
		const struct contents_piece *bo = run->work[i].bo;
		uint64_t sum = 0;
		int result = 0;

		for (; i < run->count && run->work[i].bo == bo; i++) {
			sum += run->work[i].sum;
			result = result ? result : run->work[i].result;
		}
		if (!result && sum != verify_expect(contents, bo))
			result = -EBADMSG;
		if (result)
			return verify_report_bo(kfd->id, kfd->message, bo, result);
	}
	return 0;
}

static size_t most_parts(const struct contents *contents)
{
	size_t count = 1;

	for (size_t i = 0; i < contents->count; i++)
		count += 1 + contents->pieces[i].size / PART_MAX;
	return count;
}

static int verify_contents(const struct tool_kfd *kfd, struct verify_totals *totals)
{
	_cleanup_(contents_close) struct contents contents = { 0 };
	struct verification run = { .totals = totals,
				    .lock = PTHREAD_MUTEX_INITIALIZER,
				    .ended = PTHREAD_COND_INITIALIZER };
	_cleanup_free_ struct piece_of_work *work = NULL;
	int ret = contents_open(kfd, &contents);

	if (ret < 0)
		return ret;
	run.work = work = calloc(most_parts(&contents), sizeof(*work));
	if (!work)
		return log_error(-ENOMEM, "kfd %d: cannot list its BOs", kfd->id);
	add_bos(&contents, &run, totals);
	if (run.count) {
		ret = run_threads(&run);
		if (ret < 0)
			return log_error(ret, "kfd %d: cannot start a thread", kfd->id);
	}
	totals->num_bos += run.num_bos;
	totals->bytes += run.size;
	return report(kfd, &contents, &run);
}

static int verify_directory(const struct tool_images *images, struct verify_totals *totals)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < images->num_kfds; i++) {
		if (images->kfds[i].message->num_of_gpus)
			ret = verify_contents(&images->kfds[i], totals);
	}
	return ret;
}

static void print_result(const struct verify_totals *totals, double seconds)
{
	char size[16], rate[16];

	printf("%zu BOs, %s: as they were saved (%.1f s, %s/s)\n", totals->num_bos,
	       text_size(totals->bytes, size), seconds,
	       text_size((uint64_t)((double)totals->bytes / (seconds > 0 ? seconds : 1e-9)), rate));
}

/* The bytes of contents that have checksums. */
static uint64_t sum_contents(const CriuKfd *kfd)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (bo->has_checksum)
			bytes += bo->size;
	}
	return bytes;
}

/* Errors that lie in the images themselves. */
static bool is_damage(int ret)
{
	return ret == -EBADMSG || ret == -EIO || ret == -EINVAL || ret == -ENOENT;
}

static int verify(const struct tool_images *images, const struct tool_request *request)
{
	struct verify_totals totals = { .shows_progress =
						!request->quiet && isatty(STDERR_FILENO) };
	double begin = now_seconds();
	int ret = verify_images(images);

	if (!ret)
		ret = verify_files(images, request->quiet);
	for (size_t i = 0; i < images->num_kfds; i++)
		totals.all_bytes += sum_contents(images->kfds[i].message);
	if (!ret)
		ret = host_archive() ? verify_archive(host_archive(), images, &totals)
				     : verify_directory(images, &totals);
	if (ret < 0)
		return is_damage(ret) ? TOOL_NO : TOOL_TROUBLE;
	if (!request->quiet)
		print_result(&totals, now_seconds() - begin);
	if (!totals.num_unchecked)
		return TOOL_YES;
	log_warn("%zu BOs have no checksums, so a damaged one would not be found",
		 totals.num_unchecked);
	return TOOL_YES;
}

int verify_run(const struct tool_request *request)
{
	_cleanup_(images_done) struct tool_images images = { 0 };
	int ret = images_read(&images);

	if (ret < 0)
		return ret != -ENOENT && is_damage(ret) ? TOOL_NO : TOOL_TROUBLE;
	return verify(&images, request);
}
