// SPDX-License-Identifier: GPL-2.0-only
/* Adds up the sizes of a GPU's BOs in the order of the image, which gives their places in the pages
 * file. */
#include "contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "content/kfd_jobs.h"
#include "criu/log.h"
#include "image/image.h"
#include "images.h"
#include "kernel/kfd.h"

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

static void add_pieces(struct contents *contents, const struct content_job *job, const CriuKfd *kfd)
{
	uint64_t offset = IMAGE_HEADER_SIZE;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const struct content_bo *bo = contents->jobs.by_index[i];

		if (!bo || kfd->bo_entries[i]->gpu_id != job->gpu_id)
			continue;
		contents->pieces[contents->count++] = (struct contents_piece){
			.job = job,
			.index = (uint32_t)i,
			.offset = offset,
			.size = bo->size,
		};
		offset += bo->size;
	}
}

static int open_pages(struct contents *contents, const struct tool_kfd *kfd)
{
	for (uint32_t i = 0; i < contents->jobs.num_jobs; i++) {
		struct content_job *job = &contents->jobs.jobs[i];
		int ret = image_open_pages(kfd->id, job->gpu_id,
					   content_size(job->bos, job->num_bos), &job->image_fd);

		if (ret < 0)
			return ret;
		if (job->image_fd >= 0)
			(void)posix_fadvise(job->image_fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	}
	return 0;
}

int contents_list(const struct tool_kfd *kfd, struct contents *ret_contents)
{
	_cleanup_(contents_close) struct contents contents = { 0 };
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	int ret = read_state(kfd->message, &state);

	if (!ret)
		ret = kfd_jobs_init_saved(&state, kfd->message, &contents.jobs);
	contents.pieces = calloc((size_t)state.num_bos + 1, sizeof(*contents.pieces));
	if (ret < 0 || !contents.pieces)
		return log_error(-ENOMEM, "kfd %d: cannot list its BOs", kfd->id);
	ret = kfd_jobs_set_checksums(&contents.jobs, kfd->id, kfd->message);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < contents.jobs.num_jobs; i++)
		add_pieces(&contents, &contents.jobs.jobs[i], kfd->message);
	*ret_contents = take_struct(contents);
	return 0;
}

int contents_open(const struct tool_kfd *kfd, struct contents *ret_contents)
{
	_cleanup_(contents_close) struct contents contents = { 0 };
	int ret = contents_list(kfd, &contents);

	if (!ret)
		ret = open_pages(&contents, kfd);
	if (ret < 0)
		return ret;
	*ret_contents = take_struct(contents);
	return 0;
}

void contents_close(struct contents *contents)
{
	kfd_jobs_done(&contents->jobs);
	free(contents->pieces);
	*contents = (struct contents){ 0 };
}
