// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts, buffer lists, submission of command buffers and waiting for them. What the packets do is sdma.c's; jobs run on a
 * thread of the front end.
 */
#include "render.h"
#include "sdma.h"

#define MAX_CHUNKS 128u
#define MAX_LIST 131072u
#define THROTTLE_STEP_US 10000u

struct bo_list_in {
	u32 operation, list_handle, bo_number, bo_info_size;
	u64 bo_info_ptr;
};

static void context_put(struct sim_render *render, struct sim_context *context)
{
	bool last;

	sim_lock(&render->lock);
	last = --context->references == 0;
	sim_unlock(&render->lock);
	if (!last)
		return;
	sim_os_free(context);
	sim_count(render->gpu->sim, SIM_COUNT_CONTEXTS, -1);
}

static struct sim_context *context_get(struct sim_render *render, u32 id)
{
	struct sim_context *context;

	sim_lock(&render->lock);
	context = sim_ids_get(&render->contexts, id);
	if (context)
		context->references++;
	sim_unlock(&render->lock);
	return context;
}

static void list_put(struct sim_render *render, struct sim_bo_list *list)
{
	bool last;
	u32 i;

	if (!list)
		return;
	sim_lock(&render->lock);
	last = --list->references == 0;
	sim_unlock(&render->lock);
	if (!last)
		return;
	for (i = 0; i < list->count; i++)
		sim_os_bo_put(list->bos[i]);
	sim_os_free(list);
	sim_count(render->gpu->sim, SIM_COUNT_BO_LISTS, -1);
}

static struct sim_bo_list *list_get(struct sim_render *render, u32 id)
{
	struct sim_bo_list *list;

	sim_lock(&render->lock);
	list = sim_ids_get(&render->bo_lists, id);
	if (list)
		list->references++;
	sim_unlock(&render->lock);
	return list;
}

static int context_alloc(struct sim_render *render, union sim_drm_ctx *args)
{
	struct sim_context *context;
	u32 id = 0;
	int ret;

	if (args->in.flags)
		return -EINVAL;
	context = sim_os_alloc(sizeof(*context));
	if (!context)
		return -ENOMEM;
	context->references = 1;
	sim_lock(&render->lock);
	ret = sim_ids_add(&render->contexts, context, 4096, &id);
	sim_unlock(&render->lock);
	if (ret < 0) {
		sim_os_free(context);
		return ret;
	}
	sim_count(render->gpu->sim, SIM_COUNT_CONTEXTS, 1);
	memset(args, 0, sizeof(*args));
	args->alloc.ctx_id = id;
	return 0;
}

static int context_free(struct sim_render *render, u32 id)
{
	struct sim_context *context;

	sim_lock(&render->lock);
	context = sim_ids_remove(&render->contexts, id);
	sim_unlock(&render->lock);
	if (!context)
		return -EINVAL;
	context_put(render, context);
	return 0;
}

static int context_query(struct sim_render *render, union sim_drm_ctx *args)
{
	struct sim_context *context = context_get(render, args->in.ctx_id);
	bool newer = args->in.op == DRM_CTX_QUERY2;
	bool guilty;

	if (!context)
		return -EINVAL;
	guilty = context->guilty;
	context_put(render, context);
	memset(args, 0, sizeof(*args));
	if (guilty && newer)
		args->state.flags = 1u << 0 | 1u << 2; /* reset, guilty */
	if (guilty && !newer)
		args->state.reset_status = 1;
	return 0;
}

int sim_cs_context(struct sim_render *render, union sim_drm_ctx *args)
{
	switch (args->in.op) {
	case DRM_CTX_ALLOC:
		return context_alloc(render, args);
	case DRM_CTX_FREE:
		return context_free(render, args->in.ctx_id);
	case DRM_CTX_QUERY:
	case DRM_CTX_QUERY2:
		return context_query(render, args);
	default:
		return -EINVAL;
	}
}

static int list_fill(struct sim_render *render, struct sim_bo_list *list, const struct bo_list_in *in)
{
	u32 i;

	for (i = 0; i < in->bo_number; i++) {
		struct sim_drm_bo_list_entry entry;

		if (sim_os_copy_from_user(&entry, in->bo_info_ptr + (u64)i * in->bo_info_size, sizeof(entry)) < 0)
			return -EFAULT;
		list->bos[i] = sim_os_handle_lookup(render, entry.bo_handle);
		if (!list->bos[i])
			return -ENOENT;
		list->count++;
		if (list->bos[i]->kind == SIM_BO_USERPTR && !sim_os_mm_is_current(list->bos[i]->mm))
			return -EPERM;
	}
	return 0;
}

static int list_new(struct sim_render *render, const struct bo_list_in *in, struct sim_bo_list **ret_list)
{
	struct sim_bo_list *list;
	int ret;

	if (in->bo_number > MAX_LIST || in->bo_info_size < sizeof(struct sim_drm_bo_list_entry))
		return -EINVAL;
	list = sim_os_alloc(sizeof(*list) + (u64)in->bo_number * sizeof(list->bos[0]));
	if (!list)
		return -ENOMEM;
	list->references = 1;
	sim_count(render->gpu->sim, SIM_COUNT_BO_LISTS, 1);
	ret = list_fill(render, list, in);
	if (ret < 0) {
		list_put(render, list);
		return ret;
	}
	*ret_list = list;
	return 0;
}

static int list_create(struct sim_render *render, const struct bo_list_in *in, u32 *ret_id)
{
	struct sim_bo_list *list;
	int ret;

	ret = list_new(render, in, &list);
	if (ret < 0)
		return ret;
	sim_lock(&render->lock);
	ret = sim_ids_add(&render->bo_lists, list, ~0u, ret_id);
	sim_unlock(&render->lock);
	if (ret < 0)
		list_put(render, list);
	return ret;
}

static int list_destroy(struct sim_render *render, u32 id)
{
	struct sim_bo_list *list;

	sim_lock(&render->lock);
	list = sim_ids_remove(&render->bo_lists, id);
	sim_unlock(&render->lock);
	list_put(render, list);
	return list ? 0 : -ENOENT;
}

static int list_update(struct sim_render *render, const struct bo_list_in *in)
{
	struct sim_bo_list *list, *old;
	int ret;

	ret = list_new(render, in, &list);
	if (ret < 0)
		return ret;
	sim_lock(&render->lock);
	old = sim_ids_remove(&render->bo_lists, in->list_handle);
	if (old)
		ret = sim_ids_add_at(&render->bo_lists, list, in->list_handle);
	sim_unlock(&render->lock);
	list_put(render, old ? old : list);
	return old ? ret : -ENOENT;
}

int sim_cs_bo_list(struct sim_render *render, union sim_drm_bo_list *args)
{
	struct bo_list_in in;
	u32 id;
	int ret;

	memcpy(&in, &args->in, sizeof(in));
	id = in.list_handle;
	switch (in.operation) {
	case 0:
		ret = list_create(render, &in, &id);
		break;
	case 1:
		ret = list_destroy(render, id);
		id = 0;
		break;
	case 2:
		ret = list_update(render, &in);
		break;
	default:
		return -EINVAL;
	}
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.list_handle = id;
	return 0;
}

static int refuse_ib(struct sim_render *render, const char *why, const struct sim_drm_cs_chunk_ib *ib)
{
	sim_violation(render->gpu->sim, "gpu %u: CS: %s (va 0x%" SIM_PRIx64 ", %u bytes)", render->gpu->index, why,
		      ib->va_start, ib->ib_bytes);
	return -EINVAL;
}

static int add_ib(struct sim_job *job, const struct sim_drm_cs_chunk *chunk)
{
	struct sim_render *render = job->render;
	struct sim_drm_cs_chunk_ib ib;

	if (chunk->length_dw * 4ull < sizeof(ib))
		return -EINVAL;
	if (sim_os_copy_from_user(&ib, chunk->chunk_data, sizeof(ib)) < 0)
		return -EFAULT;
	if (ib.ip_type != DRM_IP_DMA || ib.ip_instance || ib.ring >= SIM_DMA_RINGS || job->num_ibs == SIM_JOB_IBS)
		return -EINVAL;
	if (job->num_ibs && ib.ring != job->ring)
		return -EINVAL;
	if (ib.flags)
		return refuse_ib(render, "flags of the command buffer are not known", &ib);
	if (ib.va_start % SIM_SDMA_IB_ALIGNMENT)
		return refuse_ib(render, "command buffer is not aligned to 256", &ib);
	if (!ib.ib_bytes || ib.ib_bytes % (SIM_SDMA_IB_PAD_DWORDS * 4))
		return refuse_ib(render, "command buffer is not padded to 8 dwords", &ib);
	if (ib.ib_bytes > SIM_SDMA_IB_MAX_BYTES)
		return refuse_ib(render, "command buffer is too long", &ib);
	job->ring = ib.ring;
	job->ib[job->num_ibs].addr = ib.va_start;
	job->ib[job->num_ibs].bytes = ib.ib_bytes;
	job->num_ibs++;
	return 0;
}

static int add_handles(struct sim_job *job, const struct sim_drm_cs_chunk *chunk)
{
	struct bo_list_in in;

	if (chunk->length_dw * 4ull < sizeof(in) || job->list)
		return -EINVAL;
	if (sim_os_copy_from_user(&in, chunk->chunk_data, sizeof(in)) < 0)
		return -EFAULT;
	return list_new(job->render, &in, &job->list);
}

static int add_chunk(struct sim_job *job, u64 user)
{
	struct sim_drm_cs_chunk chunk;
	u64 pointer;

	if (sim_os_copy_from_user(&pointer, user, sizeof(pointer)) < 0)
		return -EFAULT;
	if (sim_os_copy_from_user(&chunk, pointer, sizeof(chunk)) < 0)
		return -EFAULT;
	if (chunk.chunk_id == DRM_CHUNK_IB)
		return add_ib(job, &chunk);
	if (chunk.chunk_id == DRM_CHUNK_BO_HANDLES)
		return add_handles(job, &chunk);
	sim_violation(job->render->gpu->sim, "gpu %u: CS: chunk %u is not simulated", job->render->gpu->index,
		      chunk.chunk_id);
	return -EINVAL;
}

/* User memory has to be there when the job is handed in. */
static int check_user_pages(const struct sim_bo_list *list)
{
	u32 i;
	int ret;

	for (i = 0; list && i < list->count; i++) {
		struct sim_bo *bo = list->bos[i];

		if (bo->kind != SIM_BO_USERPTR)
			continue;
		if (!sim_os_mm_is_current(bo->mm))
			return -EPERM;
		ret = sim_os_mm_check(bo->mm, bo->user_addr, bo->size, !bo->user_readonly);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static void job_free(struct sim_job *job)
{
	list_put(job->render, job->list);
	if (job->context)
		context_put(job->render, job->context);
	sim_os_free(job);
}

static int job_build(struct sim_job *job, const union sim_drm_cs *args)
{
	u32 i;
	int ret = 0;

	if (!args->in.num_chunks || args->in.num_chunks > MAX_CHUNKS || args->in.flags)
		return -EINVAL;
	job->context = context_get(job->render, args->in.ctx_id);
	if (!job->context)
		return -EINVAL;
	if (args->in.bo_list_handle) {
		job->list = list_get(job->render, args->in.bo_list_handle);
		if (!job->list)
			return -ENOENT;
	}
	for (i = 0; ret == 0 && i < args->in.num_chunks; i++)
		ret = add_chunk(job, args->in.chunks + 8ull * i);
	if (ret < 0)
		return ret;
	return job->num_ibs ? check_user_pages(job->list) : -EINVAL;
}

/* Numbers the job and hands it on in one step, so that numbers and execution have the same order. */
static int job_enqueue(struct sim_job *job, u64 *ret_sequence)
{
	struct sim_render *render = job->render;
	struct sim_context *context = job->context;

	sim_lock(&render->lock);
	if (context->guilty) {
		sim_unlock(&render->lock);
		return -ECANCELED;
	}
	job->sequence = ++context->ring[job->ring].last;
	job->submitted_ns = sim_os_now_ns();
	*ret_sequence = job->sequence;
	(void)__atomic_add_fetch(&render->jobs, 1, __ATOMIC_RELAXED);
	sim_os_job_start(job);
	sim_unlock(&render->lock);
	return 0;
}

int sim_cs_submit(struct sim_render *render, union sim_drm_cs *args)
{
	struct sim_job *job;
	u64 sequence;
	int ret;

	job = sim_os_alloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->render = render;
	ret = job_build(job, args);
	if (ret == 0)
		ret = job_enqueue(job, &sequence);
	if (ret < 0) {
		job_free(job);
		return ret;
	}
	memset(args, 0, sizeof(*args));
	args->out.handle = sequence;
	return 0;
}

static bool may_run(void *arg)
{
	struct sim_job *job = arg;

	return !job->render->gpu->sim->knobs.fence_hang || job->render->closing;
}

static int job_run_ib(struct sim_job *job, const struct sim_client *client, u32 index, u64 *ret_bytes)
{
	u32 size = job->ib[index].bytes;
	u32 *dwords;
	int ret;

	dwords = sim_os_alloc(size);
	if (!dwords)
		return -ENOMEM;
	ret = sim_client_read(client, job->ib[index].addr, dwords, size);
	if (ret == 0)
		ret = sim_sdma_run_ib(client, dwords, size / 4, ret_bytes);
	sim_os_free(dwords);
	return ret;
}

/* A slow engine, as far as the test asked for one. */
static void throttle(struct sim_job *job, u64 bytes)
{
	u64 rate = job->render->gpu->sim->knobs.engine_bytes_per_s;
	u64 left_us = rate ? bytes * 1000 / max(rate / 1000, (u64)1) : 0;

	while (left_us && !job->render->closing) {
		u32 step = (u32)min(left_us, (u64)THROTTLE_STEP_US);

		sim_os_sleep_us(step);
		left_us -= step;
	}
}

static int job_execute(struct sim_job *job)
{
	struct sim_render *render = job->render;
	struct sim *sim = render->gpu->sim;
	char who[32];
	struct sim_client client = {
		.sim = sim,
		.vm = &render->vm,
		.listed = job->list ? job->list->bos : (struct sim_bo **)job->front, /* an empty list allows nothing */
		.num_listed = job->list ? job->list->count : 0,
		.who = who,
	};
	u64 bytes = 0;
	u32 i;
	int ret;

	(void)snprintf(who, sizeof(who), "gpu %u: command buffer", render->gpu->index);
	if (render->closing || job->context->guilty)
		return -ECANCELED;
	ret = sim_fault(&sim->faults, "engine", "IB");
	for (i = 0; ret == 0 && i < job->num_ibs; i++) {
		u64 part = 0;

		ret = job_run_ib(job, &client, i, &part);
		if (ret < 0)
			job->context->guilty = true;
		bytes += part;
	}
	throttle(job, bytes);
	sim_count(sim, SIM_COUNT_IBS, job->num_ibs);
	sim_count(sim, SIM_COUNT_IB_BYTES, (s64)bytes);
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

void sim_job_run(struct sim_job *job)
{
	struct sim_render *render = job->render;
	struct sim *sim = render->gpu->sim;
	u64 age_us = (sim_os_now_ns() - job->submitted_ns) / 1000;
	int ret;

	if (age_us < sim->knobs.engine_latency_us && !render->closing)
		sim_os_sleep_us((u32)(sim->knobs.engine_latency_us - age_us));
	(void)sim_os_wait(&sim->job_wait, may_run, job, SIM_FOREVER, false);
	ret = job_execute(job);
	/* whatever went wrong inside, a client is told that its work was thrown away */
	job_note_result(job, ret == -EINVAL || ret == -EFAULT ? -ECANCELED : ret);
	job_free(job);
	/* the last look at the file: with no job left it may vanish */
	(void)__atomic_sub_fetch(&render->jobs, 1, __ATOMIC_RELEASE);
	sim_os_wake(&sim->job_wait);
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

static int wait_for(struct waiter *waiter, union sim_drm_wait_cs *args)
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
	ret = sim_os_wait(&waiter->render->gpu->sim->job_wait, is_done, waiter, deadline, true);
	if (ret < 0 && ret != -ETIME)
		return ret;
	args->out.status = ret == -ETIME;
	return ret == -ETIME || !waiter->sequence ? 0 : result_of(waiter);
}

int sim_cs_wait(struct sim_render *render, union sim_drm_wait_cs *args)
{
	struct waiter waiter = { .render = render, .ring = args->in.ring, .sequence = args->in.handle };
	int ret;

	if (args->in.ip_type != DRM_IP_DMA || args->in.ip_instance || args->in.ring >= SIM_DMA_RINGS)
		return -EINVAL;
	waiter.context = context_get(render, args->in.ctx_id);
	if (!waiter.context)
		return -EINVAL;
	ret = wait_for(&waiter, args);
	context_put(render, waiter.context);
	return ret;
}

static bool no_jobs(void *arg)
{
	struct sim_render *render = arg;

	return __atomic_load_n(&render->jobs, __ATOMIC_ACQUIRE) == 0;
}

int sim_cs_wait_idle(struct sim_render *render, u64 deadline_ns)
{
	return sim_os_wait(&render->gpu->sim->job_wait, no_jobs, render, deadline_ns, true);
}

void sim_cs_release(struct sim_render *render)
{
	struct sim_context *context;
	struct sim_bo_list *list;
	u32 id;

	render->closing = true;
	sim_os_wake(&render->gpu->sim->job_wait);
	(void)sim_os_wait(&render->gpu->sim->job_wait, no_jobs, render, SIM_FOREVER, false);
	id = 0;
	while ((context = sim_ids_next(&render->contexts, &id))) {
		(void)sim_ids_remove(&render->contexts, id);
		context_put(render, context);
	}
	id = 0;
	while ((list = sim_ids_next(&render->bo_lists, &id))) {
		(void)sim_ids_remove(&render->bo_lists, id);
		list_put(render, list);
	}
}
