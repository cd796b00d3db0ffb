// SPDX-License-Identifier: GPL-2.0-only
/* Saves contents in threads that outlive the hook. dump_image.c has what comes before and after the
 * contents of a process. */
#include "dump/background.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "content/kfd_jobs.h"
#include "content/pool.h"
#include "criu/host.h"
#include "dump/dump_image.h"
#include "dump/snapshot.h"
#include "image/image.h"
#include "kernel/cgroup.h"

/* A process whose contents are being saved. */
struct saving {
	struct dumped_process *process;
	/* NULL: it has ended. */
	struct content_run *run;
};

struct background {
	/* How many more GPUs may be saved at the same time. */
	sem_t gpu_limit;
	/* In the order of the dump. */
	struct saving *list;
	size_t count;
};

/* A forced dump may save an object once for each process that shares it, from a dma-buf each. If
 * two of them are imported at the same time, older kernels warn (drm_gem_prime_fd_to_handle() in
 * drm_prime.c). */
bool background_is_possible(const struct dump_session *session)
{
	const struct options *options = session->options;

	return options->parallel_dump && !options->force && host_has_hook(HOOK_DUMP_FINISH) &&
	       !image_is_streamed() && cgroup_room_has_threads();
}

static int prepare(struct dump_session *session)
{
	struct background *background = session->background;

	if (!background) {
		background = session->background = calloc(1, sizeof(*background));
		if (!background)
			return -ENOMEM;
		(void)sem_init(&background->gpu_limit, 0, CONTENT_GPUS_AT_ONCE);
	}
	return array_grow(&background->list, background->count + 1, sizeof(*background->list));
}

/* For the thread that starts the threads of a run, which inherit its root. */
struct start {
	struct saving saving;
	int ret;
};

static int start_run(struct saving *saving)
{
	struct dump_session *session = saving->process->session;
	const struct kfd_jobs *jobs = &saving->process->jobs;
	int ret = thread_unshare_fs();

	if (!ret && session->pool)
		ret = pool_start(session->pool);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < jobs->num_jobs; i++)
		jobs->jobs[i].pool = session->pool;
	return content_start_save(jobs->jobs, jobs->num_jobs, &session->options->content,
				  &session->background->gpu_limit, &saving->run);
}

static void *run_start(void *argument)
{
	struct start *start = argument;

	start->ret = start_run(&start->saving);
	return NULL;
}

static int start_saving(struct dumped_process *process)
{
	struct dump_session *session = process->session;
	struct start start = { .saving.process = process };
	pthread_t thread;
	int ret = prepare(session);

	if (!ret)
		ret = thread_start(&thread, run_start, &start);
	if (ret < 0)
		return ret;
	/* CRIU must not go on before the threads have a root of their own. */
	(void)pthread_join(thread, NULL);
	if (!start.ret)
		session->background->list[session->background->count++] = start.saving;
	return start.ret;
}

int background_start(struct dumped_process *process)
{
	struct dump_session *session = process->session;
	int ret = start_saving(process);

	/* writeback_begin() asks whether contents are being saved. */
	if (ret < 0 && session->background && !session->background->count)
		background_done(session);
	return ret;
}

uint64_t background_missing_room(const struct dump_session *session)
{
	const struct background *background = session->background;
	uint64_t bytes = 0;

	for (size_t i = 0; background && i < background->count; i++)
		bytes += content_missing_room(background->list[i].run);
	return bytes;
}

int background_await_copies(struct dump_session *session)
{
	struct background *background = session->background;

	for (size_t i = 0; background && i < background->count; i++) {
		if (content_await_copies(background->list[i].run) < 0)
			return background_finish(session);
	}
	return 0;
}

int background_finish(struct dump_session *session)
{
	struct background *background = session->background;
	int ret = 0;

	for (size_t i = 0; background && !ret && i < background->count; i++)
		ret = content_finish(take_ptr(&background->list[i].run));
	for (size_t i = 0; background && !ret && i < background->count; i++)
		ret = dump_image_finish(background->list[i].process);
	background_done(session);
	return ret;
}

void background_done(struct dump_session *session)
{
	struct background *background = take_ptr(&session->background);

	for (size_t i = 0; background && i < background->count; i++) {
		if (background->list[i].run)
			content_stop(background->list[i].run);
	}
	while (background && background->count) {
		struct saving *saving = &background->list[--background->count];

		if (saving->run)
			content_cancel(saving->run);
		snapshot_drop_process(saving->process);
	}
	if (!background)
		return;
	(void)sem_destroy(&background->gpu_limit);
	free(background->list);
	free(background);
}
