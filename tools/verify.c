// SPDX-License-Identifier: GPL-2.0-only
/* Compares the state images with each other, and then the contents of all BOs with their checksums.
 * In a directory, each pages file of a process has a thread. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "criu/log.h"
#include "host.h"
#include "image/image.h"
#include "images.h"
#include "text.h"
#include "tool.h"
#include "verify_archive.h"
#include "verify_images.h"
#include "verify_pages.h"

/* A pages file in the directory. */
struct pages_file {
	pthread_t thread;
	struct content_job *job;
	struct verify_totals *totals;
	/* Of verify_pages(). */
	const struct content_bo *bo;
	int result;
};

static int read_file(void *argument, void *bytes, size_t size)
{
	return read_full(*(const int *)argument, bytes, size);
}

static void *verify_file(void *argument)
{
	struct pages_file *file = argument;
	const struct verify_source source = { read_file, &file->job->image_fd };

	file->result = verify_pages(file->job, &source, file->totals, &file->bo);
	return NULL;
}

static int open_pages(int id, struct kfd_jobs *jobs)
{
	for (uint32_t i = 0; i < jobs->num_jobs; i++) {
		struct content_job *job = &jobs->jobs[i];
		int ret = image_open_pages(id, job->gpu_id, content_size(job->bos, job->num_bos),
					   &job->image_fd);

		if (ret < 0)
			return ret;
		if (job->image_fd >= 0)
			(void)posix_fadvise(job->image_fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	}
	return 0;
}

/* Logs if a thread cannot be started. */
static int verify_files_of(const struct tool_kfd *kfd, const struct kfd_jobs *jobs,
			   struct pages_file *files, struct verify_totals *totals)
{
	uint32_t count = 0;
	int ret = 0;

	while (!ret && count < jobs->num_jobs) {
		files[count].job = &jobs->jobs[count];
		files[count].totals = totals;
		ret = thread_start(&files[count].thread, verify_file, &files[count]);
		count += !ret;
	}
	for (uint32_t i = 0; i < count; i++)
		(void)pthread_join(files[i].thread, NULL);
	verify_end_progress(totals);
	return ret < 0 ? log_error(ret, "kfd %d: cannot start a thread", kfd->id) : 0;
}

/* Names the first BO that differs. */
static int verify_contents(const struct tool_kfd *kfd, struct verify_totals *totals)
{
	_cleanup_(kfd_jobs_done) struct kfd_jobs jobs = { 0 };
	_cleanup_free_ struct pages_file *files = NULL;
	int ret = verify_list_pages(kfd, &jobs);

	if (!ret)
		ret = open_pages(kfd->id, &jobs);
	if (ret < 0)
		return ret;
	files = calloc((size_t)jobs.num_jobs + 1, sizeof(*files));
	if (!files)
		return log_error(-ENOMEM, "kfd %d: cannot list its BOs", kfd->id);
	ret = verify_files_of(kfd, &jobs, files, totals);
	for (uint32_t i = 0; !ret && i < jobs.num_jobs; i++) {
		if (files[i].result)
			ret = verify_report(kfd, &jobs, files[i].job, files[i].bo, files[i].result);
	}
	return ret;
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
	struct verify_totals totals = { .lock = PTHREAD_MUTEX_INITIALIZER,
					.shows_progress =
						!request->quiet && isatty(STDERR_FILENO) };
	double begin = now_seconds();
	int ret = verify_images(images, request->quiet);

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
