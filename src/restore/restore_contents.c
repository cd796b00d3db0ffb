// SPDX-License-Identifier: GPL-2.0-only
/* Loads the contents of the BOs that RESTORE has rebuilt, or hands them to CRIU's main process
 * (handoff.c). content_load() does the copying. */
#include "restore/restore_contents.h"

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "content/kfd_jobs.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/cgroup.h"
#include "kernel/proc.h"
#include "memory/gpu_files.h"
#include "memory/restore_shared.h"
#include "restore/handoff.h"

static int open_pages(const struct restored_task *task, struct content_job *jobs, uint32_t num_jobs)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < num_jobs; i++) {
		struct content_job *job = &jobs[i];
		const struct topology_node *saved = topology_find_gpu(&task->saved, job->gpu_id);
		const struct topology_node *gpu = gpu_files_local(task, saved);

		job->render_minor = gpu->drm_render_minor;
		job->pci_device = topology_pci_device(gpu);
		job->streamed = image_is_streamed();
		ret = image_open_pages(task->kfd_id, job->gpu_id,
				       content_size(job->bos, job->num_bos), &job->image_fd);
	}
	return ret;
}

int restore_contents_check(const struct restored_task *task)
{
	const CriuKfd *kfd = task->kfd;
	int ret = 0;

	/* A stream can be opened only once, and does not tell its length before its end. */
	if (image_is_streamed())
		return 0;
	for (size_t i = 0; !ret && i < kfd->n_device_entries; i++) {
		uint32_t gpu_id = kfd->device_entries[i]->gpu_id;
		int fd = -1;

		ret = gpu_id ? image_open_pages(task->kfd_id, gpu_id,
						image_contents_size(kfd, gpu_id), &fd)
			     : 0;
		fd_close(&fd);
	}
	return ret;
}

/* Why this task must not start threads, or NULL. CRIU restores threads of other tasks meanwhile. A
 * thread of the plugin could have the id that CRIU needs: a new PID namespace, such as that of a
 * container, gives out its lowest ids, which the job has, too. Or it could reach the limit of a
 * cgroup before they do. */
static const char *find_obstacle(const struct restore_session *session)
{
	if (!session->pid_namespace || proc_pid_namespace() != session->pid_namespace)
		return "CRIU may need the ids of more threads in this PID namespace";
	if (!cgroup_room_has_threads())
		return "a limit of processes (pids.max) leaves little room for those of the job";
	return NULL;
}

static int load(const struct restore_session *session, struct content_job *jobs, size_t num_jobs)
{
	struct content_settings settings = session->options->content;
	const char *obstacle = find_obstacle(session);
	int ret;

	settings.one_thread = obstacle;
	if (obstacle)
		log_info("contents: one thread loads them, because %s", obstacle);
	ret = content_load(jobs, num_jobs, &settings);
	if (!ret)
		content_totals_add(&session->shared->totals, jobs, num_jobs);
	return ret;
}

/* Reads one image to its end before it opens the next. A streamer may serve images one by one, and
 * would wait for the reader of one image while the plugin waits for another. */
static int load_streams(const struct restore_session *session, struct kfd_jobs *jobs)
{
	int id = session->task.kfd_id;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < jobs->num_jobs; i++) {
		struct content_job *job = &jobs->jobs[i];

		ret = open_pages(&session->task, job, 1);
		if (!ret)
			ret = load(session, job, 1);
		if (!ret)
			ret = image_end_pages(id, job->gpu_id, &job->image_fd);
	}
	return ret;
}

static int load_all(const struct restore_session *session, struct kfd_jobs *jobs,
		    enum task_phase *phase)
{
	int ret;

	if (image_is_streamed())
		return load_streams(session, jobs);
	ret = open_pages(&session->task, jobs->jobs, jobs->num_jobs);
	if (ret < 0)
		return ret;
	if (!session->handoff || !session->shared->handoff_is_ready)
		return load(session, jobs->jobs, jobs->num_jobs);
	*phase = PHASE_HANDED_OFF;
	return handoff_send(session->handoff, jobs->jobs, jobs->num_jobs);
}

int restore_contents_load(const struct restore_session *session, const struct kfd_state *state)
{
	_cleanup_(kfd_jobs_done) struct kfd_jobs jobs = { 0 };
	enum task_phase phase = PHASE_DONE;
	/* The task that owns an object loads its contents. */
	int ret = kfd_jobs_init_saved(state, session->task.kfd, &jobs);

	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its BOs", session->task.kfd_id);
	ret = kfd_jobs_set_checksums(&jobs, session->task.kfd_id, session->task.kfd);
	if (!ret)
		ret = load_all(session, &jobs, &phase);
	if (!ret)
		restore_shared_set_phase(session->shared, session->task.vpid, phase);
	return ret;
}
