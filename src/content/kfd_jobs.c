// SPDX-License-Identifier: GPL-2.0-only
/* Groups the BOs of a KFD process by GPU, in the order of the image format. content_save() and
 * content_load() then copy the contents. */
#include "content/kfd_jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/content.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"

static int add_bos(const struct kfd_state *state, const bool *without, struct kfd_jobs *jobs,
		   struct content_job *job)
{
	struct content_bo *bos = calloc((size_t)state->num_bos + 1, sizeof(*bos));

	if (!bos)
		return -ENOMEM;
	job->bos = bos;
	for (uint32_t i = 0; i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];

		if (bo->gpu_id != job->gpu_id || !(bo->alloc_flags & KFD_BO_WITH_CONTENTS) ||
		    (without && without[i]))
			continue;
		jobs->by_index[i] = &bos[job->num_bos++];
		*jobs->by_index[i] =
			(struct content_bo){ .dmabuf_fd = (int)bo->dmabuf_fd, .size = bo->size };
	}
	return 0;
}

int kfd_jobs_init(const struct kfd_state *state, const bool *without, struct kfd_jobs *ret_jobs)
{
	_cleanup_(kfd_jobs_done) struct kfd_jobs jobs = { 0 };

	jobs.jobs = calloc((size_t)state->num_devices + 1, sizeof(*jobs.jobs));
	jobs.by_index = calloc((size_t)state->num_bos + 1, sizeof(*jobs.by_index));
	if (!jobs.jobs || !jobs.by_index)
		return -ENOMEM;
	for (uint32_t i = 0; i < state->num_devices; i++) {
		struct content_job *job = &jobs.jobs[jobs.num_jobs++];

		job->gpu_id = state->devices[i].user_gpu_id;
		job->image_fd = -1;
		if (add_bos(state, without, &jobs, job) < 0)
			return -ENOMEM;
	}
	*ret_jobs = take_struct(jobs);
	return 0;
}

int kfd_jobs_init_saved(const struct kfd_state *state, const CriuKfd *kfd,
			struct kfd_jobs *ret_jobs)
{
	_cleanup_free_ bool *imported = calloc(kfd->n_bo_entries + 1, sizeof(*imported));

	if (!imported)
		return -ENOMEM;
	for (size_t i = 0; i < kfd->n_bo_entries; i++)
		imported[i] = kfd->bo_entries[i]->has_owner_pid;
	return kfd_jobs_init(state, imported, ret_jobs);
}

int kfd_jobs_set_checksums(struct kfd_jobs *jobs, int id, const CriuKfd *kfd)
{
	bool known = kfd->checksums && !strcmp(kfd->checksums, CHECKSUM_NAME);

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (jobs->by_index[i])
			jobs->by_index[i]->checksum = kfd->bo_entries[i]->checksum;
	}
	for (uint32_t i = 0; i < jobs->num_jobs; i++) {
		struct content_job *job = &jobs->jobs[i];
		const KfdDeviceEntry *entry = image_find_device(kfd, job->gpu_id);
		uint64_t checksum;
		int ret = checksum_of_job(job, &checksum);

		if (ret < 0)
			return log_error(ret,
					 "kfd %d: cannot sum up the checksums of GPU 0x%04x's BOs",
					 id, job->gpu_id);
		job->has_checksums = known && entry->has_contents_checksum;
		if (job->has_checksums && entry->contents_checksum != checksum)
			return log_error(
				-EBADMSG,
				"kfd %d: the checksums of GPU 0x%04x's BOs are not those that were saved",
				id, job->gpu_id);
	}
	return 0;
}

void kfd_jobs_done(struct kfd_jobs *jobs)
{
	for (uint32_t i = 0; i < jobs->num_jobs; i++) {
		fd_close(&jobs->jobs[i].image_fd);
		free(jobs->jobs[i].bos);
		base_chunks_done(&jobs->jobs[i].chunks);
	}
	free(jobs->by_index);
	free(jobs->jobs);
	*jobs = (struct kfd_jobs){ 0 };
}
