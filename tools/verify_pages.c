// SPDX-License-Identifier: GPL-2.0-only
/* Sums up BO after BO in the order of the pages file. */
#include "verify_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/content.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "text.h"

#define PIECE      (64u << 10)
#define PROGRESS_S 0.2

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

int verify_list_pages(const struct tool_kfd *kfd, struct kfd_jobs *ret_jobs)
{
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	_cleanup_(kfd_jobs_done) struct kfd_jobs jobs = { 0 };
	int ret = read_state(kfd->message, &state);

	if (!ret)
		ret = kfd_jobs_init_saved(&state, kfd->message, &jobs);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its BOs", kfd->id);
	ret = kfd_jobs_set_checksums(&jobs, kfd->id, kfd->message);
	if (ret < 0)
		return ret;
	*ret_jobs = take_struct(jobs);
	return 0;
}

static void show_progress(const struct verify_totals *totals)
{
	char done[16], all[16];

	(void)fprintf(stderr, "\rverified %s of %s", text_size(totals->bytes, done),
		      text_size(totals->all_bytes, all));
}

/* The last bytes are always shown. */
static void count_bytes(struct verify_totals *totals, uint64_t size)
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

void verify_end_progress(const struct verify_totals *totals)
{
	if (totals->shows_progress)
		(void)fprintf(stderr, "\r%*s\r", 60, "");
}

static int verify_bo(const struct content_bo *bo, const struct verify_source *source,
		     struct verify_totals *totals)
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

int verify_pages(const struct content_job *job, const struct verify_source *source,
		 struct verify_totals *totals, const struct content_bo **ret_bo)
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

int verify_report(const struct tool_kfd *kfd, const struct kfd_jobs *jobs,
		  const struct content_job *job, const struct content_bo *bo, int result)
{
	uint64_t offset = IMAGE_HEADER_SIZE + content_size(job->bos, (size_t)(bo - job->bos));
	char name[IMAGE_NAME_SIZE];
	uint32_t index = 0;

	while (jobs->by_index[index] != bo)
		index++;
	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, kfd->id, job->gpu_id);
	return log_error(result > 0 ? -EBADMSG : result,
			 "image %s: BO %" PRIu32 " (VA 0x%" PRIx64 ", %" PRIu64
			 " bytes, at offset %" PRIu64 ") of process %" PRIu32 ": %s",
			 name, index, kfd->message->bo_entries[index]->addr, bo->size, offset,
			 kfd->message->pid,
			 result > 0 ? "its contents are not those that were saved"
				    : "cannot read it");
}
