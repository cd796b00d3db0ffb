// SPDX-License-Identifier: GPL-2.0-only
/* Contents of the BOs that a restored task has been given: from which image, with which checksums,
 * and by whom. How they are moved is the content unit's business. */
#include "restore/fill.h"

#include <errno.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "criu/log.h"
#include "image/image.h"
#include "restore/handoff.h"
#include "restore/shared.h"

static int open_pages(const struct restored_task *task, struct content_job *jobs, uint32_t num_jobs)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < num_jobs; i++) {
		struct content_job *job = &jobs[i];
		const struct topology_node *saved = topology_find_gpu(&task->saved, job->gpu_id);

		job->render_minor = task->map.local[saved - task->saved.nodes]->drm_render_minor;
		job->streamed = image_is_streamed();
		ret = image_open_pages(task->kfd_id, job->gpu_id,
				       content_size(job->bos, job->num_bos), &job->image_fd);
	}
	return ret;
}

static uint64_t saved_size(const CriuKfd *kfd, uint32_t gpu_id)
{
	uint64_t size = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (bo->gpu_id == gpu_id && bo->alloc_flags & KFD_BO_WITH_CONTENTS)
			size += bo->size;
	}
	return size;
}

int fill_check(const struct restored_task *task)
{
	const CriuKfd *kfd = task->kfd;
	int ret = 0;

	/* A stream is opened once, and its length is known at its end. */
	if (image_is_streamed())
		return 0;
	for (size_t i = 0; !ret && i < kfd->n_device_entries; i++) {
		uint32_t gpu_id = kfd->device_entries[i]->gpu_id;
		int fd = -1;

		ret = gpu_id ? image_open_pages(task->kfd_id, gpu_id, saved_size(kfd, gpu_id), &fd)
			     : 0;
		fd_close(&fd);
	}
	return ret;
}

static const KfdDeviceEntry *find_entry(const CriuKfd *kfd, uint32_t gpu_id)
{
	size_t i = 0;

	while (kfd->device_entries[i]->gpu_id != gpu_id)
		i++;
	return kfd->device_entries[i];
}

/* What the contents must be, where the image says so. */
static int expect_checksums(const struct restored_task *task, struct kfd_jobs *work)
{
	const CriuKfd *kfd = task->kfd;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (work->by_index[i])
			work->by_index[i]->checksum = kfd->bo_entries[i]->xxh3;
	}
	for (uint32_t i = 0; i < work->num_jobs; i++) {
		struct content_job *job = &work->jobs[i];
		const KfdDeviceEntry *entry = find_entry(kfd, job->gpu_id);
		uint64_t checksum;
		int ret = content_checksum(job, &checksum);

		if (ret < 0)
			return log_error(ret,
					 "kfd %d: cannot sum up the checksums of GPU 0x%04x's BOs",
					 task->kfd_id, job->gpu_id);
		job->has_checksums = entry->has_contents_xxh3;
		if (job->has_checksums && entry->contents_xxh3 != checksum)
			return log_error(-EBADMSG,
					 "kfd %d: the checksums of GPU 0x%04x's BOs are not"
					 " those that were saved",
					 task->kfd_id, job->gpu_id);
	}
	return 0;
}

void restore_listen(struct restore_session *session)
{
	int ret = handoff_listen(session->handoff);

	if (ret < 0)
		log_warn(
			"contents: each task loads its own, since CRIU's main process cannot start a"
			" thread that does it: %s",
			strerror(-ret));
	else
		restore_shared_set_handoff_ready(session->shared);
}

/* A streamer may serve one image after the other, and would wait for the reader of one while we
 * wait for another. */
static int load_streams(const struct restore_session *session, struct kfd_jobs *work)
{
	int id = session->task.kfd_id;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < work->num_jobs; i++) {
		struct content_job *job = &work->jobs[i];

		ret = open_pages(&session->task, job, 1);
		if (!ret)
			ret = content_load(job, 1, &session->options->content);
		if (!ret)
			ret = image_end_pages(id, job->gpu_id, &job->image_fd);
	}
	return ret;
}

static int load_files(const struct restore_session *session, struct kfd_jobs *work)
{
	int ret = open_pages(&session->task, work->jobs, work->num_jobs);

	if (ret < 0)
		return ret;
	if (session->handoff && restore_shared_handoff_is_ready(session->shared)) {
		ret = handoff_send(session->handoff, work->jobs, work->num_jobs);
		return ret < 0 ? ret : PHASE_HANDED_OFF;
	}
	ret = content_load(work->jobs, work->num_jobs, &session->options->content);
	return ret < 0 ? ret : PHASE_DONE;
}

int fill_contents(const struct restore_session *session, const struct kfd_state *state)
{
	_cleanup_(kfd_jobs_done) struct kfd_jobs work = { 0 };
	int ret;

	ret = kfd_jobs_init(state, &work);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its BOs", session->task.kfd_id);
	ret = expect_checksums(&session->task, &work);
	if (ret < 0)
		return ret;
	if (!image_is_streamed())
		return load_files(session, &work);
	ret = load_streams(session, &work);
	return ret < 0 ? ret : PHASE_DONE;
}
