// SPDX-License-Identifier: GPL-2.0-only
/* Makes the BOs of a workload, and gets their dma-bufs. */
#include "subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/kfd_jobs.h"

/* Descriptors for everything but BOs. */
#define OTHER_DESCRIPTORS 600

static int complain(int ret, const char *what)
{
	(void)fprintf(stderr, "bench: %s: %s\n", what, strerror(-ret));
	return ret;
}

/* A dma-buf needs one descriptor, and the simulator another to keep the buffer itself. */
static size_t most_bos(void)
{
	struct rlimit limit;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max / 2 - OTHER_DESCRIPTORS;
}

static size_t count_contents(const struct workload *workload)
{
	size_t count = 0;

	for (size_t i = 0; i < workload->num_bos; i++)
		count += workload_has_content(&workload->bos[i]);
	return count;
}

/* Keeps one BO of @step on each GPU. */
static void thin_out(struct workload *workload, size_t step)
{
	size_t kept = 0, seen = 0;
	uint32_t gpu = 0;

	for (size_t i = 0; i < workload->num_bos; i++) {
		struct workload_bo bo = workload->bos[i];

		if (bo.gpu != gpu)
			seen = 0;
		gpu = bo.gpu;
		if (!workload_has_content(&bo) || seen++ % step == 0)
			workload->bos[kept++] = bo;
	}
	workload->num_bos = kept;
}

static int parse(const char *words, uint64_t most_bytes, struct workload *ret_workload)
{
	char scaled[1024];
	uint64_t bytes;
	int ret;

	ret = workload_parse(words, ret_workload);
	bytes = ret < 0 ? 0 : workload_content_bytes(ret_workload);
	if (ret < 0 || !most_bytes || bytes <= most_bytes)
		return ret;
	workload_done(ret_workload);
	(void)snprintf(scaled, sizeof(scaled), "%s,scale=1/%llu", words,
		       (unsigned long long)((bytes + most_bytes - 1) / most_bytes));
	return workload_parse(scaled, ret_workload);
}

static int checkpoint(struct subject *subject)
{
	int kfd = subject->task.files[0].fd;
	int ret = kfd_pause(kfd, &subject->state);

	if (!ret)
		ret = kfd_state_alloc(&subject->state);
	if (!ret)
		ret = kfd_checkpoint(kfd, &subject->state, 0);
	if (!ret)
		ret = kfd_unpause(kfd);
	if (!ret)
		ret = kfd_jobs_init(&subject->state, NULL, &subject->work);
	return ret < 0 ? complain(ret, "checkpoint") : 0;
}

/* A job like @made, with its BOs repeated until there are @wanted. */
static int repeat_bos(const struct content_job *made, size_t wanted, struct content_job *ret_job)
{
	struct content_bo *bos = calloc(wanted + 1, sizeof(*bos));

	if (!bos)
		return -ENOMEM;
	for (size_t i = 0; i < wanted; i++)
		bos[i] = made->bos[i % made->num_bos];
	*ret_job = *made;
	ret_job->bos = bos;
	ret_job->num_bos = wanted;
	return 0;
}

static int add_job(struct subject *subject, const struct topology *topology, uint32_t gpu,
		   size_t wanted)
{
	struct content_job *job = &subject->jobs[subject->num_jobs];
	const struct topology_node *node;
	int ret;

	node = topology_find_gpu(topology, subject->state.devices[gpu].actual_gpu_id);
	if (!node)
		return -ENODEV;
	ret = repeat_bos(&subject->work.jobs[gpu], wanted, job);
	if (ret < 0)
		return ret;
	subject->num_jobs++;
	job->render_minor = node->drm_render_minor;
	subject->bytes += content_size(job->bos, wanted);
	return 0;
}

/* @wanted: BOs of all GPUs together. */
static int add_jobs(struct subject *subject, size_t wanted)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	int ret = topology_read(TOPOLOGY_SYSFS, &topology);

	subject->jobs = calloc(subject->work.num_jobs + 1, sizeof(*subject->jobs));
	if (!subject->jobs)
		return -ENOMEM;
	for (uint32_t i = 0; !ret && i < subject->work.num_jobs; i++) {
		if (subject->work.jobs[i].num_bos)
			ret = add_job(subject, &topology, i, wanted / subject->workload.gpus);
	}
	return ret < 0 ? complain(ret, "jobs") : 0;
}

int subject_make(const char *words, uint64_t most_bytes, struct subject *ret_subject)
{
	struct subject *subject = ret_subject;
	size_t wanted, most = most_bos();
	int ret;

	*subject = (struct subject){ 0 };
	ret = parse(words, most_bytes, &subject->workload);
	if (ret < 0)
		return ret;
	wanted = count_contents(&subject->workload);
	subject->repeats = (wanted + most - 1) / most;
	if (subject->repeats > 1)
		thin_out(&subject->workload, subject->repeats);
	ret = client_open(&subject->workload, &subject->client);
	if (!ret)
		ret = client_make(subject->client, &subject->workload, &subject->task);
	if (!ret)
		ret = checkpoint(subject);
	return ret < 0 ? ret : add_jobs(subject, wanted);
}

void subject_done(struct subject *subject)
{
	for (size_t i = 0; i < subject->num_jobs; i++)
		free(subject->jobs[i].bos);
	free(subject->jobs);
	kfd_jobs_done(&subject->work);
	kfd_state_done(&subject->state);
	if (subject->client)
		client_close(subject->client);
	task_done(&subject->task);
	workload_done(&subject->workload);
	*subject = (struct subject){ 0 };
}
