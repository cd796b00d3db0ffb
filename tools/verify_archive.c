// SPDX-License-Identifier: GPL-2.0-only
/* Compares contents with their checksums in the order in which an archive has them: an archive can
 * only be read from its beginning to its end. */
#include "verify_archive.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/content.h"
#include "criu/log.h"
#include "image/image_dir.h"
#include "images.h"
#include "verify.h"

#define PIECE (1u << 20)

struct verification {
	const struct tool_images *images;
	struct verify_totals *totals;
	double shown;
	uint8_t *buffer;
	/* The process of the last pages file, and its BOs. */
	const struct tool_kfd *kfd;
	struct contents contents;
};

static const struct tool_kfd *find_kfd(const struct tool_images *images, int id)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		if (images->kfds[i].id == id && images->kfds[i].message->num_of_gpus)
			return &images->kfds[i];
	}
	return NULL;
}

static void show_progress(struct verification *run, uint64_t done)
{
	double now = now_seconds();

	if (now - run->shown < VERIFY_PROGRESS_MS / 1000.0)
		return;
	run->shown = now;
	verify_show_progress(run->totals, done);
}

/* Also reads contents without a checksum: those of the next BO follow. */
static int verify_bo(struct verification *run, const struct contents_piece *bo,
		     struct tar_member *member)
{
	uint64_t sum = 0;

	for (uint64_t at = 0, size; at < bo->size; at += size) {
		int ret;

		size = bo->size - at < PIECE ? bo->size - at : PIECE;
		ret = tar_read(member, run->buffer, size);
		if (ret < 0)
			return ret;
		sum += checksum_pages(run->buffer, size, at / CONTENT_ALIGNMENT);
		show_progress(run, at);
	}
	if (!bo->job->has_checksums) {
		run->totals->num_unchecked++;
		return 0;
	}
	run->totals->num_bos++;
	run->totals->bytes += bo->size;
	return sum == verify_expect(&run->contents, bo)
		       ? 0
		       : verify_report_bo(run->kfd->id, run->kfd->message, bo, -EBADMSG);
}

static int verify_pages(struct verification *run, const struct image_name *image,
			struct tar_member *member)
{
	uint64_t size = image_contents_size(run->kfd->message, image->gpu_id), header;
	const struct contents *contents = &run->contents;
	int ret = tar_read(member, &header, sizeof(header));

	if (ret < 0)
		return ret;
	if (le64toh(header) != size)
		return log_error(-EINVAL,
				 "image " IMAGE_PAGES_NAME ": damaged: its header says %" PRIu64
				 " bytes, but the BOs have %" PRIu64,
				 image->id, image->gpu_id, le64toh(header), size);
	for (size_t i = 0; !ret && i < contents->count; i++) {
		if (contents->pieces[i].job->gpu_id == image->gpu_id)
			ret = verify_bo(run, &contents->pieces[i], member);
	}
	return ret;
}

/* The pages files of a process follow each other in most archives. */
static int list_bos(struct verification *run, const struct tool_kfd *kfd)
{
	if (run->kfd == kfd)
		return 0;
	contents_close(&run->contents);
	run->kfd = kfd;
	return contents_list(kfd, &run->contents);
}

static int take_pages(const struct image_name *image, struct tar_member *member, void *argument)
{
	struct verification *run = argument;
	const struct tool_kfd *kfd = find_kfd(run->images, image->id);
	int ret;

	if (!kfd || !image_contents_size(kfd->message, image->gpu_id))
		return 0;
	ret = list_bos(run, kfd);
	return ret < 0 ? ret : verify_pages(run, image, member);
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
	_cleanup_free_ uint8_t *buffer = malloc(PIECE);
	struct verification run = { .images = images, .totals = totals, .buffer = buffer };
	const struct pages_reader reader = { .take = take_pages, .argument = &run };
	int ret = 0;

	if (!buffer)
		return log_error(-ENOMEM, "cannot verify contents");
	for (size_t i = 0; !ret && i < images->num_kfds; i++) {
		if (images->kfds[i].message->num_of_gpus)
			ret = check_pages(archive, &images->kfds[i]);
	}
	if (!ret)
		ret = image_archive_read_pages(archive, &reader);
	contents_close(&run.contents);
	verify_end_progress(totals);
	return ret;
}
