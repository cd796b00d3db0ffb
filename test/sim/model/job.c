// SPDX-License-Identifier: GPL-2.0-only
/* Runs command buffers on a thread of the front end, drops those of files and contexts that end,
 * and waits for them. sdma.c runs the packets. */
#include "cs.h"
#include "sdma.h"

#define THROTTLE_STEP_US 10000u

void sim_job_enter(struct sim_job *job)
{
	struct sim_job **end = &job->render->waiting;

	sim_lock(&job->sim->job_lock);
	while (*end)
		end = &(*end)->next;
	*end = job;
	sim_unlock(&job->sim->job_lock);
}

static void job_put(struct sim_job *job)
{
	if (__atomic_sub_fetch(&job->holders, 1, __ATOMIC_ACQ_REL) == 0)
		free(job);
}

static bool may_run(void *arg)
{
	struct sim_job *job = arg;
	bool dropped;

	sim_lock(&job->sim->job_lock);
	dropped = job->dropped;
	sim_unlock(&job->sim->job_lock);
	return dropped || !SIM_KNOB(job->sim, fence_hang);
}

/* The engine takes the job. It must not even read the file of a dropped job. */
static bool job_begin(struct sim_job *job)
{
	struct sim_job **link;
	bool begins;

	sim_lock(&job->sim->job_lock);
	begins = !job->dropped;
	if (begins) {
		for (link = &job->render->waiting; *link != job; link = &(*link)->next)
			;
		*link = job->next;
		job->render->running++;
		job->context->running++;
	}
	sim_unlock(&job->sim->job_lock);
	return begins;
}

static int job_run_ib(struct sim_job *job, const struct sim_client *client, u32 index,
		      u64 *ret_bytes)
{
	u32 size = job->ib[index].bytes;
	u32 *dwords;
	int ret;

	dwords = calloc(1, size);
	if (!dwords)
		return -ENOMEM;
	ret = sim_client_read(client, job->ib[index].addr, dwords, size);
	if (ret == 0)
		ret = sim_sdma_run_ib(client, dwords, size / 4, ret_bytes);
	free(dwords);
	return ret;
}

static bool is_abandoned(const struct sim_job *job)
{
	return __atomic_load_n(&job->render->closing, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&job->context->leaving, __ATOMIC_RELAXED);
}

/* Reserves the engine's time for @bytes, after all jobs before it on any ring. Returns the time
 * when the engine will have finished the job. */
static u64 take_time(struct sim_job *job, u64 bytes)
{
	u64 rate = max(SIM_KNOB(job->sim, engine_bytes_per_s) / 1000, (u64)1);
	u64 start = job->submitted_ns + SIM_KNOB(job->sim, engine_latency_us) * 1000;
	struct sim_gpu *gpu = job->render->gpu;
	u64 end;

	sim_lock(&job->sim->job_lock);
	end = max(start, gpu->job_end_ns) + bytes * 1000000 / rate;
	gpu->job_end_ns = end;
	sim_unlock(&job->sim->job_lock);
	return end;
}

/* Delays the job, if the test asked for a slow engine. The real time of the copy counts as part of
 * the delay. */
static void throttle(struct sim_job *job, u64 bytes)
{
	u64 end, now;

	if (!SIM_KNOB(job->sim, engine_bytes_per_s))
		return;
	end = take_time(job, bytes);
	while ((now = sim_os_now_ns()) < end && !is_abandoned(job))
		sim_os_sleep_us((u32)min((end - now + 999) / 1000, (u64)THROTTLE_STEP_US));
}

/* -N in @error: the Nth GPU, otherwise the GPU of the job. */
static struct sim_gpu *gpu_of_error(struct sim_job *job, int error)
{
	u32 index = (u32)-error - 1;

	return index < job->sim->num_gpus ? &job->sim->gpus[index] : job->render->gpu;
}

/* Errors that real engines do not report: the fence of the job signals as after success, but after
 * a reset VRAM is lost, and a page fault drops the access. */
static bool job_suffers(struct sim_job *job)
{
	struct sim_faults *faults = &job->sim->faults;
	int error = sim_fault(faults, "engine", "RESET");
	struct sim_gpu *own = job->render->gpu;

	if (error)
		(void)__atomic_add_fetch(&gpu_of_error(job, error)->resets, 1, __ATOMIC_RELAXED);
	error = sim_fault(faults, "engine", "MEMORY_ERROR");
	if (error)
		(void)__atomic_add_fetch(&gpu_of_error(job, error)->memory_errors, 1,
					 __ATOMIC_RELAXED);
	error = sim_fault(faults, "engine", "PAGE_FAULT");
	if (error)
		__atomic_store_n(&job->render->fault_addr, job->ib[0].addr, __ATOMIC_RELAXED);
	return error || __atomic_load_n(&own->resets, __ATOMIC_RELAXED);
}

static int job_execute(struct sim_job *job)
{
	struct sim_render *render = job->render;
	struct sim *sim = render->gpu->sim;
	static struct sim_bo *none[1]; /* an empty list allows nothing */
	char who[32];
	struct sim_client client = {
		.sim = sim,
		.vm = &render->vm,
		.listed = job->list ? job->list->bos : none,
		.num_listed = job->list ? job->list->count : 0,
		.skip_copies = SIM_KNOB(sim, skip_copies) != 0,
		.who = who,
	};
	u64 bytes = 0;
	u32 i;
	int ret;

	(void)snprintf(who, sizeof(who), "gpu %u: command buffer", render->gpu->index);
	if (__atomic_load_n(&job->context->guilty, __ATOMIC_RELAXED))
		return -ECANCELED;
	if (job_suffers(job))
		client.skip_copies = true;
	ret = sim_fault(&sim->faults, "engine", "IB");
	for (i = 0; ret == 0 && i < job->num_ibs; i++) {
		u64 part = 0;

		ret = job_run_ib(job, &client, i, &part);
		if (ret < 0)
			__atomic_store_n(&job->context->guilty, true, __ATOMIC_RELAXED);
		bytes += part;
	}
	throttle(job, bytes);
	return ret;
}

static void job_note_result(struct sim_job *job, int error)
{
	struct sim_context *context = job->context;
	u32 slot;

	sim_lock(&job->render->lock);
	if (error < 0) {
		slot = context->ring[job->ring].num_failed++ % SIM_FAILED_JOBS;
		context->ring[job->ring].failed[slot].sequence = job->sequence;
		context->ring[job->ring].failed[slot].error = error;
	}
	context->ring[job->ring].done = job->sequence;
	sim_unlock(&job->render->lock);
}

static void job_end(struct sim_job *job, int error)
{
	struct sim_render *render = job->render;
	struct sim_gpu *gpu = render->gpu;
	struct sim *sim = job->sim;

	job_note_result(job, error);
	if (!job->dropped) {
		sim_lock(&sim->job_lock);
		render->running--;
		job->context->running--;
		sim_unlock(&sim->job_lock);
	}
	sim_job_release(job);
	/* the last access to the file: without a job the file may end */
	(void)__atomic_sub_fetch(&render->jobs, 1, __ATOMIC_RELEASE);
	sim_os_wake(&gpu->job_wait);
}

void sim_job_run(struct sim_job *job)
{
	struct sim *sim = job->sim;
	u64 age_us = (sim_os_now_ns() - job->submitted_ns) / 1000;
	u64 latency_us = SIM_KNOB(sim, engine_latency_us);

	if (age_us < latency_us)
		sim_os_sleep_us((u32)(latency_us - age_us));
	(void)sim_os_wait(job->wait, may_run, job, SIM_FOREVER);
	if (!job_begin(job)) {
		job_put(job);
		return;
	}
	job->result = job_execute(job);
	sim_os_job_copied(job);
}

void sim_job_finish(struct sim_job *job, int error)
{
	int ret = job->result < 0 ? job->result : error;

	/* whatever failed inside, the client sees that its job was cancelled */
	job_end(job, ret == -EINVAL || ret == -EFAULT ? -ECANCELED : ret);
	job_put(job);
}

static struct sim_job *take_waiting(struct sim_render *render, const struct sim_context *context)
{
	struct sim_job *taken = NULL, **link = &render->waiting, **end = &taken, *job;

	sim_lock(&render->gpu->sim->job_lock);
	while ((job = *link)) {
		if (context && job->context != context) {
			link = &job->next;
			continue;
		}
		*link = job->next;
		job->next = NULL;
		job->dropped = true;
		job->holders = 2;
		*end = job;
		end = &job->next;
	}
	sim_unlock(&render->gpu->sim->job_lock);
	return taken;
}

/* What ends: a context, or the whole file. */
struct leaver {
	struct sim_render *render;
	struct sim_context *context;
};

static bool none_runs(void *arg)
{
	struct leaver *leaver = arg;
	u32 running;

	sim_lock(&leaver->render->gpu->sim->job_lock);
	running = leaver->context ? leaver->context->running : leaver->render->running;
	sim_unlock(&leaver->render->gpu->sim->job_lock);
	return running == 0;
}

void sim_jobs_drop(struct sim_render *render, struct sim_context *context)
{
	struct sim_job *jobs = take_waiting(render, context), *job;
	struct leaver leaver = { render, context };
	struct sim_wait *wait = &render->gpu->job_wait;

	sim_os_wake(wait);
	/* fences signal in the order of submission */
	(void)sim_os_wait(wait, none_runs, &leaver, SIM_FOREVER);
	while ((job = jobs)) {
		jobs = job->next;
		job_end(job, -ECANCELED);
		job_put(job);
	}
}

struct waiter {
	struct sim_render *render;
	struct sim_context *context;
	u32 ring;
	u64 sequence;
};

static bool is_done(void *arg)
{
	struct waiter *waiter = arg;
	bool done;

	sim_lock(&waiter->render->lock);
	done = waiter->context->ring[waiter->ring].done >= waiter->sequence;
	sim_unlock(&waiter->render->lock);
	return done;
}

static int result_of(struct waiter *waiter)
{
	int error = 0;
	u32 i;

	sim_lock(&waiter->render->lock);
	for (i = 0; i < SIM_FAILED_JOBS; i++)
		if (waiter->context->ring[waiter->ring].failed[i].sequence == waiter->sequence)
			error = waiter->context->ring[waiter->ring].failed[i].error;
	sim_unlock(&waiter->render->lock);
	return error;
}

static int wait_for(struct waiter *waiter, union drm_amdgpu_wait_cs *args)
{
	u64 deadline = args->in.timeout >> 63 ? SIM_FOREVER : args->in.timeout;
	u64 last;
	int ret;

	sim_lock(&waiter->render->lock);
	last = waiter->context->ring[waiter->ring].last;
	sim_unlock(&waiter->render->lock);
	if (waiter->sequence == ~0ull)
		waiter->sequence = last;
	if (waiter->sequence > last)
		return -EINVAL;
	ret = sim_os_wait(&waiter->render->gpu->job_wait, is_done, waiter, deadline);
	if (ret < 0 && ret != -ETIME)
		return ret;
	args->out.status = ret == -ETIME;
	return ret == -ETIME || !waiter->sequence ? 0 : result_of(waiter);
}

int sim_cs_wait(struct sim_render *render, union drm_amdgpu_wait_cs *args)
{
	struct waiter waiter = { .render = render,
				 .ring = args->in.ring,
				 .sequence = args->in.handle };
	int ret;

	if (args->in.ip_type != AMDGPU_HW_IP_DMA || args->in.ip_instance ||
	    args->in.ring >= SIM_DMA_RINGS)
		return -EINVAL;
	waiter.context = sim_context_get(render, args->in.ctx_id);
	if (!waiter.context)
		return -EINVAL;
	ret = wait_for(&waiter, args);
	sim_context_put(render, waiter.context);
	return ret;
}

static bool no_jobs(void *arg)
{
	struct sim_render *render = arg;

	return __atomic_load_n(&render->jobs, __ATOMIC_ACQUIRE) == 0;
}

void sim_cs_wait_idle(struct sim_render *render)
{
	(void)sim_os_wait(&render->gpu->job_wait, no_jobs, render, SIM_FOREVER);
}
