// SPDX-License-Identifier: GPL-2.0-only
/* Compares the state images with each other, and then the contents of all BOs with their checksums.
 * In a directory, several threads compare a pages file each. An archive can only be read from its
 * beginning to its end, so contents are compared in its order. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/content.h"
#include "content/kfd_jobs.h"
#include "criu/log.h"
#include "host.h"
#include "image/image.h"
#include "image_archive.h"
#include "images.h"
#include "text.h"
#include "tool.h"
#include "verify_images.h"

#define PIECE      (64u << 10)
#define PROGRESS_S 0.2

/* Counts what is compared, in all processes. Several threads may add to it at the same time. */
struct totals {
	pthread_mutex_t lock;
	/* A terminal shows the progress. It was shown last at this time, in seconds. */
	bool shows_progress;
	double shown;
	size_t num_bos;
	size_t num_unchecked;
	uint64_t bytes;
	/* With those that follow. */
	uint64_t all_bytes;
};

/* The contents of a pages file, which follow its header. */
struct source {
	/* Reads the next bytes. Return: 0 or -errno. */
	int (*read)(void *argument, void *bytes, size_t size);
	void *argument;
};

/* The state from which kfd_jobs_init_saved() makes jobs. */
static int read_state(const CriuKfd *kfd, struct kfd_state *state)
{
	uint32_t count = 0;
	int ret;

	state->num_devices = kfd->num_of_gpus;
	state->num_bos = (uint32_t)kfd->n_bo_entries;
	ret = kfd_state_alloc(state);
	for (size_t i = 0; !ret && i < kfd->n_device_entries; i++) {
		if (kfd->device_entries[i]->gpu_id)
			state->devices[count++].user_gpu_id = kfd->device_entries[i]->gpu_id;
	}
	for (size_t i = 0; !ret && i < kfd->n_bo_entries; i++) {
		state->bos[i].gpu_id = kfd->bo_entries[i]->gpu_id;
		state->bos[i].size = kfd->bo_entries[i]->size;
		state->bos[i].alloc_flags = kfd->bo_entries[i]->alloc_flags;
	}
	return ret;
}

/* Makes a job of each pages file of the process, with the checksums of its BOs. Logs on error.
 * -EBADMSG: the checksums are damaged. Free the result with kfd_jobs_done(). */
static int list_pages(const struct tool_image *process, struct kfd_jobs *ret_jobs)
{
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	_cleanup_(kfd_jobs_done) struct kfd_jobs jobs = { 0 };
	int ret = read_state(process->kfd, &state);

	if (!ret)
		ret = kfd_jobs_init_saved(&state, process->kfd, &jobs);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its BOs", process->id);
	ret = kfd_jobs_set_checksums(&jobs, process->id, process->kfd);
	if (ret < 0)
		return ret;
	*ret_jobs = take_struct(jobs);
	return 0;
}

static void show_progress(const struct totals *totals)
{
	char done[16], all[16];

	(void)fprintf(stderr, "\rverified %s of %s", text_size(totals->bytes, done),
		      text_size(totals->all_bytes, all));
}

/* The last bytes are always shown. */
static void count_bytes(struct totals *totals, uint64_t size)
{
	double now = now_seconds();

	(void)pthread_mutex_lock(&totals->lock);
	totals->bytes += size;
	if (totals->shows_progress &&
	    (now - totals->shown >= PROGRESS_S || totals->bytes == totals->all_bytes)) {
		totals->shown = now;
		show_progress(totals);
	}
	(void)pthread_mutex_unlock(&totals->lock);
}

/* Clears the line of the progress. */
static void end_progress(const struct totals *totals)
{
	if (totals->shows_progress)
		(void)fprintf(stderr, "\r%*s\r", 60, "");
}

static int verify_bo(const struct content_bo *bo, const struct source *source,
		     struct totals *totals)
{
	uint8_t piece[PIECE];
	uint64_t sum = 0;

	for (uint64_t at = 0, size; at < bo->size; at += size) {
		int ret;

		size = bo->size - at < PIECE ? bo->size - at : PIECE;
		ret = source->read(source->argument, piece, size);
		if (ret < 0)
			return ret;
		sum += checksum_pages(piece, size, at / CONTENT_ALIGNMENT);
		count_bytes(totals, size);
	}
	return sum != bo->checksum;
}

/* Reads the contents, unless the job has no checksums. Return: 0, 1 if BO *@ret_bo differs, or
 * -errno if it cannot be read. Logs nothing. */
static int verify_pages(const struct content_job *job, const struct source *source,
			struct totals *totals, const struct content_bo **ret_bo)
{
	size_t *count = job->has_checksums ? &totals->num_bos : &totals->num_unchecked;
	int ret = 0;

	(void)pthread_mutex_lock(&totals->lock);
	*count += job->num_bos;
	(void)pthread_mutex_unlock(&totals->lock);
	for (size_t i = 0; !ret && job->has_checksums && i < job->num_bos; i++) {
		*ret_bo = &job->bos[i];
		ret = verify_bo(*ret_bo, source, totals);
	}
	return ret;
}

/* Logs a result of verify_pages() but 0. Return: -EBADMSG if the BO differs, or @result. */
static int report(const struct tool_image *process, const struct kfd_jobs *jobs,
		  const struct content_job *job, const struct content_bo *bo, int result)
{
	uint64_t offset = IMAGE_HEADER_SIZE + content_size(job->bos, (size_t)(bo - job->bos));
	char name[IMAGE_NAME_SIZE];
	uint32_t index = 0;

	while (jobs->by_index[index] != bo)
		index++;
	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, process->id, job->gpu_id);
	return log_error(result > 0 ? -EBADMSG : result,
			 "image %s: BO %" PRIu32 " (VA 0x%" PRIx64 ", %" PRIu64
			 " bytes, at offset %" PRIu64 ") of process %" PRIu32 ": %s",
			 name, index, process->kfd->bo_entries[index]->addr, bo->size, offset,
			 process->kfd->pid,
			 result > 0 ? "its contents are not those that were saved"
				    : "cannot read it");
}

/* --- a directory ---------------------------------------------------------------------------------
 */

#define THREADS_MAX 16

/* A pages file in the directory. */
struct pages_file {
	const struct tool_image *process;
	const struct kfd_jobs *jobs;
	const struct content_job *job;
	/* Of verify_pages(). There is no BO if the file cannot be opened, which is logged then. */
	const struct content_bo *bo;
	int result;
};

/* The pages files of all processes. Threads take one after the other. */
struct directory {
	struct kfd_jobs *jobs;
	size_t num_processes;
	struct pages_file *files;
	size_t num_files;
	atomic_size_t next;
	struct totals *totals;
};

static void directory_done(struct directory *directory)
{
	for (size_t i = 0; i < directory->num_processes; i++)
		kfd_jobs_done(&directory->jobs[i]);
	free(directory->jobs);
	free(directory->files);
}

static int read_file(void *argument, void *bytes, size_t size)
{
	return read_full(*(const int *)argument, bytes, size);
}

static int verify_file(struct pages_file *file, struct totals *totals)
{
	const struct content_job *job = file->job;
	_cleanup_close_ int fd = -1;
	const struct source source = { read_file, &fd };
	int ret = image_open_pages(file->process->id, job->gpu_id,
				   content_size(job->bos, job->num_bos), &fd);

	if (ret < 0)
		return ret;
	if (fd >= 0)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return verify_pages(job, &source, totals, &file->bo);
}

/* After a failure no thread takes another file. */
static void *verify_files(void *argument)
{
	struct directory *directory = argument;
	size_t i;

	while ((i = atomic_fetch_add(&directory->next, 1)) < directory->num_files) {
		struct pages_file *file = &directory->files[i];

		file->result = verify_file(file, directory->totals);
		if (file->result)
			atomic_store(&directory->next, directory->num_files);
	}
	return NULL;
}

/* This thread compares, too, so all files are compared even if no other thread can be started. */
static void run_threads(struct directory *directory)
{
	size_t wanted = clamp(usable_processors(), 1, THREADS_MAX), count = 0;
	pthread_t threads[THREADS_MAX];

	wanted = wanted < directory->num_files ? wanted : directory->num_files;
	while (count + 1 < wanted && !thread_start(&threads[count], verify_files, directory))
		count++;
	(void)verify_files(directory);
	while (count)
		(void)pthread_join(threads[--count], NULL);
	end_progress(directory->totals);
}

static int list_jobs(const struct tool_images *images, struct directory *directory)
{
	int ret = 0;

	directory->jobs = calloc(images->count + 1, sizeof(*directory->jobs));
	if (!directory->jobs)
		return log_error(-ENOMEM, "cannot list the BOs");
	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		struct kfd_jobs *jobs = &directory->jobs[directory->num_processes];

		if (ret < 0 || !image->kfd->num_of_gpus)
			continue;
		ret = list_pages(image, jobs);
		directory->num_processes++;
		directory->num_files += jobs->num_jobs;
	}
	return ret;
}

static int list_files(const struct tool_images *images, struct directory *directory)
{
	const struct kfd_jobs *jobs = directory->jobs;
	struct pages_file *file = calloc(directory->num_files + 1, sizeof(*file));

	directory->files = file;
	if (!file)
		return log_error(-ENOMEM, "cannot list the images of contents");
	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		if (!image->kfd->num_of_gpus)
			continue;
		for (uint32_t i = 0; i < jobs->num_jobs; i++)
			*file++ = (struct pages_file){ .process = image,
						       .jobs = jobs,
						       .job = &jobs->jobs[i] };
		jobs++;
	}
	return 0;
}

/* Names the first BO that differs in the first file with one. */
static int verify_directory(const struct tool_images *images, struct totals *totals)
{
	_cleanup_(directory_done) struct directory directory = { .totals = totals };
	int ret = list_jobs(images, &directory);

	if (!ret)
		ret = list_files(images, &directory);
	if (ret < 0)
		return ret;
	run_threads(&directory);
	for (size_t i = 0; !ret && i < directory.num_files; i++) {
		const struct pages_file *file = &directory.files[i];

		ret = file->result;
		if (file->bo && ret)
			ret = report(file->process, file->jobs, file->job, file->bo, ret);
	}
	return ret;
}

/* --- an archive ----------------------------------------------------------------------------------
 */

struct verification {
	const struct tool_images *images;
	struct totals *totals;
};

static const struct tool_image *find_process(const struct tool_images *images, int id)
{
	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		if (image->id == id)
			return image;
	}
	return NULL;
}

static int read_member(void *argument, void *bytes, size_t size)
{
	return tar_read(argument, bytes, size);
}

static int check_header(const struct tool_image *process, const struct image_name *image,
			struct tar_member *member)
{
	uint64_t size = image_contents_size(process->kfd, image->gpu_id), header;
	int ret = tar_read(member, &header, sizeof(header));

	if (ret < 0 || le64toh(header) == size)
		return ret;
	return log_error(-EINVAL,
			 "image " IMAGE_PAGES_NAME ": damaged: its header says %" PRIu64
			 " bytes, but the BOs have %" PRIu64,
			 image->id, image->gpu_id, le64toh(header), size);
}

/* tar_read() logs its errors. */
static int take_pages(const struct image_name *image, struct tar_member *member, void *argument)
{
	const struct verification *run = argument;
	const struct tool_image *process = find_process(run->images, image->id);
	const struct source source = { read_member, member };
	_cleanup_(kfd_jobs_done) struct kfd_jobs jobs = { 0 };
	const struct content_bo *bo = NULL;
	const struct content_job *job;
	int ret;

	if (!process || !image_contents_size(process->kfd, image->gpu_id))
		return 0;
	ret = list_pages(process, &jobs);
	if (!ret)
		ret = check_header(process, image, member);
	for (job = jobs.jobs; !ret && job->gpu_id != image->gpu_id;)
		job++;
	if (!ret)
		ret = verify_pages(job, &source, run->totals, &bo);
	return ret > 0 ? report(process, &jobs, job, bo, ret) : ret;
}

/* That each pages file is there, with the size that the BOs have. */
static int check_pages(const struct image_archive *archive, const struct tool_image *process)
{
	for (size_t i = 0; i < process->kfd->n_device_entries; i++) {
		uint32_t gpu_id = process->kfd->device_entries[i]->gpu_id;
		uint64_t size = gpu_id ? image_contents_size(process->kfd, gpu_id) : 0, found = 0;
		int ret = size ? image_archive_find_pages(archive, process->id, gpu_id, &found) : 0;

		if (ret < 0)
			return log_error(ret, "image " IMAGE_PAGES_NAME " is not in the archive",
					 process->id, gpu_id);
		if (size && found != size + IMAGE_HEADER_SIZE)
			return log_error(-EINVAL,
					 "image " IMAGE_PAGES_NAME ": damaged: it has %" PRIu64
					 " bytes, but the BOs need %" PRIu64,
					 process->id, gpu_id, found, size + IMAGE_HEADER_SIZE);
	}
	return 0;
}

static int verify_archive(const struct image_archive *archive, const struct tool_images *images,
			  struct totals *totals)
{
	struct verification run = { .images = images, .totals = totals };
	const struct pages_reader reader = { .take = take_pages, .argument = &run };
	int ret = 0;

	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		ret = ret ? ret : check_pages(archive, image);
	}
	if (!ret)
		ret = image_archive_read_pages(archive, &reader);
	end_progress(totals);
	return ret;
}

/* --- the command ---------------------------------------------------------------------------------
 */

static void print_result(const struct totals *totals, double seconds)
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
	struct totals totals = { .lock = PTHREAD_MUTEX_INITIALIZER,
				 .shows_progress = !request->quiet && isatty(STDERR_FILENO) };
	double begin = now_seconds();
	int ret = verify_images(images, request->quiet);

	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		totals.all_bytes += sum_contents(image->kfd);
	}
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
