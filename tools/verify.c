// SPDX-License-Identifier: GPL-2.0-only
/* Compares the contents of all BOs with their checksums, and the images with each other. Several
 * threads sum up parts of BOs. A BO of an older image is one part, because its checksum needs the
 * bytes in order. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "contents.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "tool.h"

#define PIECE (1u << 20)
/* The most of a BO that is one part. */
#define PART_MAX    (64ull << 20)
#define THREADS_MAX 8
/* A terminal shows the progress this often. */
#define PROGRESS_MS 200

/* A part of a BO. */
struct piece_of_work {
	const struct content_job *job;
	/* Of the BO in the message of its process. */
	uint32_t index;
	/* Of the BO in its pages file. */
	uint64_t bo_offset;
	/* In the BO. */
	uint64_t offset;
	uint64_t size;
	/* The checksum of the BO. */
	uint64_t expected;
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
	atomic_size_t next;
	atomic_uint_fast64_t done;
	/* The threads that have not ended, and a wake-up for the end of the last. */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	size_t running;
};

struct totals {
	size_t num_bos;
	size_t num_unchecked;
	uint64_t bytes;
};

static int sum_up(struct verification *run, struct piece_of_work *work)
{
	bool in_order = work->job->checksums == CONTENT_XXH3;
	_cleanup_free_ void *piece = malloc(PIECE);
	XXH3_state_t *state = XXH3_createState();
	int ret = piece && state ? 0 : -ENOMEM;

	if (!ret)
		(void)XXH3_64bits_reset(state);
	for (uint64_t at = 0; !ret && at < work->size;) {
		size_t size = work->size - at < PIECE ? (size_t)(work->size - at) : PIECE;
		uint64_t offset = work->offset + at;

		ret = pread_full(work->job->image_fd, piece, size, work->bo_offset + offset);
		if (!ret && in_order)
			(void)XXH3_64bits_update(state, piece, size);
		else if (!ret)
			work->sum += checksum_pages(piece, size, offset / CONTENT_ALIGNMENT);
		at += size;
		(void)atomic_fetch_add(&run->done, size);
	}
	if (!ret && in_order)
		work->sum = XXH3_64bits_digest(state);
	(void)XXH3_freeState(state);
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

static void show_progress(struct verification *run)
{
	uint64_t done = atomic_load(&run->done);
	char now[16], all[16];

	(void)fprintf(stderr, "\rverified %s of %s", text_size(done, now),
		      text_size(run->size, all));
}

/* The lock is held. Shows the progress until all threads have ended. */
static void await_threads(struct verification *run, bool shows_progress)
{
	while (run->running) {
		struct timespec until;

		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PROGRESS_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&run->ended, &run->lock, &until);
		if (shows_progress)
			show_progress(run);
	}
	if (shows_progress)
		(void)fprintf(stderr, "\r%*s\r", 60, "");
}

static size_t choose_threads(size_t num_parts)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t count = processors > 0 ? (size_t)processors : 1;

	count = count < THREADS_MAX ? count : THREADS_MAX;
	return count < num_parts ? count : num_parts;
}

static int run_threads(struct verification *run, bool shows_progress)
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
	await_threads(run, shows_progress);
	(void)pthread_mutex_unlock(&run->lock);
	for (size_t i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	return count ? 0 : ret;
}

/* Adds the parts of BO number @index, of which @part has everything else. */
static void add_parts(struct verification *run, struct piece_of_work part, uint64_t size)
{
	uint64_t most = part.job->checksums == CONTENT_XXH3 ? size : PART_MAX;

	for (; part.offset < size; part.offset += part.size) {
		part.size = size - part.offset < most ? size - part.offset : most;
		run->work[run->count++] = part;
	}
	run->size += size;
	run->num_bos++;
}

static void add_work(const struct kfd_jobs *jobs, const struct content_job *job, const CriuKfd *kfd,
		     struct verification *run)
{
	uint64_t offset = IMAGE_HEADER_SIZE;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const struct content_bo *bo = jobs->by_index[i];

		if (!bo || kfd->bo_entries[i]->gpu_id != job->gpu_id)
			continue;
		add_parts(run,
			  (struct piece_of_work){
				  .job = job,
				  .index = (uint32_t)i,
				  .bo_offset = offset,
				  .expected = bo->checksum,
			  },
			  bo->size);
		offset += bo->size;
	}
}

static int open_jobs(int id, const CriuKfd *kfd, struct kfd_jobs *jobs, struct verification *run,
		     struct totals *totals)
{
	for (uint32_t i = 0; i < jobs->num_jobs; i++) {
		struct content_job *job = &jobs->jobs[i];
		int ret = image_open_pages(id, job->gpu_id, content_size(job->bos, job->num_bos),
					   &job->image_fd);

		if (ret < 0)
			return ret;
		if (job->image_fd >= 0)
			(void)posix_fadvise(job->image_fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		if (job->checksums == CONTENT_NO_CHECKSUM)
			totals->num_unchecked += job->num_bos;
		else
			add_work(jobs, job, kfd, run);
	}
	return 0;
}

static int report_bo(int id, const CriuKfd *kfd, const struct piece_of_work *work, int result)
{
	const KfdBoEntry *bo = kfd->bo_entries[work->index];
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, work->job->gpu_id);
	return log_error(result,
			 "image %s: BO %" PRIu32 " (VA 0x%" PRIx64 ", %" PRIu64
			 " bytes, at offset %" PRIu64 ") of process %" PRIu32 ": %s",
			 name, work->index, bo->addr, bo->size, work->bo_offset, kfd->pid,
			 result == -EBADMSG ? "its contents are not those that were saved"
					    : "cannot read it");
}

/* Names the first BO that differs. */
static int report(int id, const CriuKfd *kfd, const struct verification *run)
{
	size_t i = 0;

	while (i < run->count) {
		const struct piece_of_work *first = &run->work[i];
		uint64_t sum = 0;
		int result = 0;

		for (; i < run->count && run->work[i].index == first->index; i++) {
			sum += run->work[i].sum;
			result = result ? result : run->work[i].result;
		}
		if (!result && sum != first->expected)
			result = -EBADMSG;
		if (result)
			return report_bo(id, kfd, first, result);
	}
	return 0;
}

static size_t most_parts(const struct kfd_jobs *jobs)
{
	size_t count = 1;

	for (uint32_t i = 0; i < jobs->num_jobs; i++) {
		const struct content_job *job = &jobs->jobs[i];

		count += job->num_bos + content_size(job->bos, job->num_bos) / PART_MAX;
	}
	return count;
}

static int verify_contents(const struct tool_kfd *kfd, bool shows_progress, struct totals *totals)
{
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	_cleanup_(kfd_jobs_done) struct kfd_jobs jobs = { 0 };
	struct verification run = { .lock = PTHREAD_MUTEX_INITIALIZER,
				    .ended = PTHREAD_COND_INITIALIZER };
	_cleanup_free_ struct piece_of_work *work = NULL;
	int ret = contents_read_state(kfd->message, &state);

	if (!ret)
		ret = kfd_jobs_init(&state, NULL, &jobs);
	if (!ret)
		work = calloc(most_parts(&jobs), sizeof(*work));
	run.work = work;
	if (ret < 0 || !work)
		return log_error(-ENOMEM, "kfd %d: cannot list its BOs", kfd->id);
	ret = kfd_jobs_set_checksums(&jobs, kfd->id, kfd->message);
	if (!ret)
		ret = open_jobs(kfd->id, kfd->message, &jobs, &run, totals);
	if (!ret && run.count) {
		ret = run_threads(&run, shows_progress);
		if (ret < 0)
			return log_error(ret, "kfd %d: cannot start a thread", kfd->id);
	}
	totals->num_bos += run.num_bos;
	totals->bytes += run.size;
	return ret ? ret : report(kfd->id, kfd->message, &run);
}

static const struct tool_kfd *find_state(const struct tool_images *images, uint32_t pid)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		const CriuKfd *kfd = images->kfds[i].message;

		if (kfd->num_of_gpus && kfd->pid == pid)
			return &images->kfds[i];
	}
	return NULL;
}

/* Two states of one process are from two dumps. */
static int check_kfds(const struct tool_images *images)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		const struct tool_kfd *kfd = &images->kfds[i], *first;

		first = kfd->message->num_of_gpus ? find_state(images, kfd->message->pid) : kfd;
		if (first && first != kfd)
			return log_error(-EINVAL,
					 "images: kfd %d and kfd %d both have the state of process"
					 " %" PRIu32 ", so they are from two dumps",
					 first->id, kfd->id, kfd->message->pid);
	}
	return 0;
}

static int check_renders(const struct tool_images *images)
{
	for (size_t i = 0; i < images->num_renders; i++) {
		const CriuRenderNode *node = images->renders[i].message;

		for (size_t j = 0; j < node->n_owners; j++) {
			const KfdOwner *owner = node->owners[j];
			const struct tool_kfd *kfd = find_state(images, owner->pid);

			if (!kfd || (uint32_t)kfd->id != owner->kfd_id)
				return log_error(-EINVAL,
						 "images: render node %d names kfd %" PRIu32
						 " of process %" PRIu32
						 ", which the directory does not have",
						 images->renders[i].id, owner->kfd_id, owner->pid);
		}
	}
	return 0;
}

static void print_result(const struct totals *totals, double seconds)
{
	char size[16], rate[16];

	printf("%zu BOs, %s: as they were saved (%.1f s, %s/s)\n", totals->num_bos,
	       text_size(totals->bytes, size), seconds,
	       text_size((uint64_t)((double)totals->bytes / (seconds > 0 ? seconds : 1e-9)), rate));
}

/* Errors that lie in the images themselves. */
static bool is_damage(int ret)
{
	return ret == -EBADMSG || ret == -EIO || ret == -EINVAL || ret == -ENOENT;
}

static int verify(const struct tool_images *images, const struct tool_request *request)
{
	bool shows_progress = !request->quiet && isatty(STDERR_FILENO);
	struct totals totals = { 0 };
	double begin = now_seconds();
	int ret = check_kfds(images);

	if (!ret)
		ret = check_renders(images);
	for (size_t i = 0; !ret && i < images->num_kfds; i++) {
		if (images->kfds[i].message->num_of_gpus)
			ret = verify_contents(&images->kfds[i], shows_progress, &totals);
	}
	if (ret < 0)
		return is_damage(ret) ? TOOL_NO : TOOL_TROUBLE;
	if (!request->quiet)
		print_result(&totals, now_seconds() - begin);
	if (!totals.num_unchecked)
		return TOOL_YES;
	log_warn("%zu BOs have no checksums, so nobody can tell whether they are whole",
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
