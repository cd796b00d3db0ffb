// SPDX-License-Identifier: GPL-2.0-only
/* Compares contents with their checksums in the order in which an archive has them: an archive can
 * only be read from its beginning to its end. */
#include "verify_archive.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>

#include "criu/log.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "images.h"

struct verification {
	const struct tool_images *images;
	struct verify_totals *totals;
	/* The process of the last pages file, and its BOs. */
	const struct tool_kfd *kfd;
	struct kfd_jobs jobs;
};

static const struct tool_kfd *find_kfd(const struct tool_images *images, int id)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		if (images->kfds[i].id == id && images->kfds[i].message->num_of_gpus)
			return &images->kfds[i];
	}
	return NULL;
}

static int read_member(void *argument, void *bytes, size_t size)
{
	return tar_read(argument, bytes, size);
}

static int check_header(const struct verification *run, const struct image_name *image,
			struct tar_member *member)
{
	uint64_t size = image_contents_size(run->kfd->message, image->gpu_id), header;
	int ret = tar_read(member, &header, sizeof(header));

	if (ret < 0 || le64toh(header) == size)
		return ret;
	return log_error(-EINVAL,
			 "image " IMAGE_PAGES_NAME ": damaged: its header says %" PRIu64
			 " bytes, but the BOs have %" PRIu64,
			 image->id, image->gpu_id, le64toh(header), size);
}

/* tar_read() logs its errors. */
static int verify_member(const struct verification *run, const struct image_name *image,
			 struct tar_member *member)
{
	const struct verify_source source = { read_member, member };
	const struct content_job *job = run->jobs.jobs;
	const struct content_bo *bo = NULL;
	int ret = check_header(run, image, member);

	while (job->gpu_id != image->gpu_id)
		job++;
	if (!ret)
		ret = verify_pages(job, &source, run->totals, &bo);
	return ret > 0 ? verify_report(run->kfd, &run->jobs, job, bo, ret) : ret;
}

/* The pages files of a process follow each other in most archives. */
static int list_bos(struct verification *run, const struct tool_kfd *kfd)
{
	if (run->kfd == kfd)
		return 0;
	kfd_jobs_done(&run->jobs);
	run->kfd = kfd;
	return verify_list_pages(kfd, &run->jobs);
}

static int take_pages(const struct image_name *image, struct tar_member *member, void *argument)
{
	struct verification *run = argument;
	const struct tool_kfd *kfd = find_kfd(run->images, image->id);
	int ret;

	if (!kfd || !image_contents_size(kfd->message, image->gpu_id))
		return 0;
	ret = list_bos(run, kfd);
	return ret < 0 ? ret : verify_member(run, image, member);
}

/* That each pages file is there, with the size that the BOs have. */
static int check_pages(const struct image_archive *archive, const struct tool_kfd *kfd)
{
	for (size_t i = 0; i < kfd->message->n_device_entries; i++) {
		uint32_t gpu_id = kfd->message->device_entries[i]->gpu_id;
		uint64_t size = gpu_id ? image_contents_size(kfd->message, gpu_id) : 0, found = 0;
		int ret = size ? image_archive_find_pages(archive, kfd->id, gpu_id, &found) : 0;

		if (ret < 0)
			return log_error(ret, "image " IMAGE_PAGES_NAME " is not in the archive",
					 kfd->id, gpu_id);
		if (size && found != size + IMAGE_HEADER_SIZE)
			return log_error(-EINVAL,
					 "image " IMAGE_PAGES_NAME ": damaged: it has %" PRIu64
					 " bytes, but the BOs need %" PRIu64,
					 kfd->id, gpu_id, found, size + IMAGE_HEADER_SIZE);
	}
	return 0;
}

int verify_archive(const struct image_archive *archive, const struct tool_images *images,
		   struct verify_totals *totals)
{
	struct verification run = { .images = images, .totals = totals };
	const struct pages_reader reader = { .take = take_pages, .argument = &run };
	int ret = 0;

	for (size_t i = 0; !ret && i < images->num_kfds; i++) {
		if (images->kfds[i].message->num_of_gpus)
			ret = check_pages(archive, &images->kfds[i]);
	}
	if (!ret)
		ret = image_archive_read_pages(archive, &reader);
	kfd_jobs_done(&run.jobs);
	verify_end_progress(totals);
	return ret;
}
