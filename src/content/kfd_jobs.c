// SPDX-License-Identifier: GPL-2.0-only
/* Sorts the BOs of a KFD process by GPU for the content unit, in the order of the image format. */
#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "kernel/kfd.h"

static int collect(const struct kfd_state *state, struct kfd_jobs *work, struct content_job *job)
{
	struct content_bo *bos = calloc((size_t)state->num_bos + 1, sizeof(*bos));

	if (!bos)
		return -ENOMEM;
	job->bos = bos;
	for (uint32_t i = 0; i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];

		if (bo->gpu_id != job->gpu_id || !(bo->alloc_flags & KFD_BO_WITH_CONTENTS))
			continue;
		work->by_index[i] = &bos[job->num_bos++];
		*work->by_index[i] = (struct content_bo){ (int)bo->dmabuf_fd, bo->size, 0 };
	}
	return 0;
}

int kfd_jobs_init(const struct kfd_state *state, struct kfd_jobs *ret_work)
{
	_cleanup_(kfd_jobs_done) struct kfd_jobs work = { 0 };

	work.jobs = calloc((size_t)state->num_devices + 1, sizeof(*work.jobs));
	work.by_index = calloc((size_t)state->num_bos + 1, sizeof(*work.by_index));
	if (!work.jobs || !work.by_index)
		return -ENOMEM;
	for (uint32_t i = 0; i < state->num_devices; i++) {
		struct content_job *job = &work.jobs[work.num_jobs++];

		job->gpu_id = state->devices[i].user_gpu_id;
		job->image_fd = -1;
		if (collect(state, &work, job) < 0)
			return -ENOMEM;
	}
	*ret_work = work;
	work = (struct kfd_jobs){ 0 };
	return 0;
}

void kfd_jobs_done(struct kfd_jobs *work)
{
	for (uint32_t i = 0; i < work->num_jobs; i++) {
		fd_close(&work->jobs[i].image_fd);
		free(work->jobs[i].bos);
	}
	free(work->by_index);
	free(work->jobs);
	*work = (struct kfd_jobs){ 0 };
}
