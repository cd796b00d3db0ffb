// SPDX-License-Identifier: GPL-2.0-only
/* Submission of command buffers: reads the client's arguments, checks their form and queues a job.
 * job.c runs jobs and waits for them. */
#include "cs.h"
#include "sdma.h"

#define MAX_CHUNKS 128u

static int refuse_ib(struct sim_render *render, const char *why,
		     const struct drm_amdgpu_cs_chunk_ib *ib)
{
	sim_violation(render->gpu->sim, "gpu %u: CS: %s (va 0x%llx, %u bytes)", render->gpu->index,
		      why, ib->va_start, ib->ib_bytes);
	return -EINVAL;
}

static int add_ib(struct sim_job *job, const struct drm_amdgpu_cs_chunk *chunk)
{
	struct sim_render *render = job->render;
	struct drm_amdgpu_cs_chunk_ib ib;

	if (chunk->length_dw * 4ull < sizeof(ib))
		return -EINVAL;
	if (sim_os_copy_from_user(&ib, chunk->chunk_data, sizeof(ib)) < 0)
		return -EFAULT;
	if (ib.ip_type != AMDGPU_HW_IP_DMA || ib.ip_instance || ib.ring >= SIM_DMA_RINGS ||
	    job->num_ibs == SIM_JOB_IBS)
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

static int add_handles(struct sim_job *job, const struct drm_amdgpu_cs_chunk *chunk)
{
	struct sim_bo_list_in in;

	if (chunk->length_dw * 4ull < sizeof(in) || job->list)
		return -EINVAL;
	if (sim_os_copy_from_user(&in, chunk->chunk_data, sizeof(in)) < 0)
		return -EFAULT;
	return sim_bo_list_new(job->render, &in, &job->list);
}

static int add_chunk(struct sim_job *job, u64 user)
{
	struct drm_amdgpu_cs_chunk chunk;
	u64 pointer;

	if (sim_os_copy_from_user(&pointer, user, sizeof(pointer)) < 0)
		return -EFAULT;
	if (sim_os_copy_from_user(&chunk, pointer, sizeof(chunk)) < 0)
		return -EFAULT;
	if (chunk.chunk_id == AMDGPU_CHUNK_ID_IB)
		return add_ib(job, &chunk);
	if (chunk.chunk_id == AMDGPU_CHUNK_ID_BO_HANDLES)
		return add_handles(job, &chunk);
	sim_violation(job->render->gpu->sim, "gpu %u: CS: chunk %u is not simulated",
		      job->render->gpu->index, chunk.chunk_id);
	return -EINVAL;
}

/* User memory must be mapped at the submission. */
static int check_user_pages(const struct sim_bo_list *list)
{
	u32 i;
	int ret;

	for (i = 0; list && i < list->count; i++) {
		struct sim_bo *bo = list->bos[i];

		if (bo->kind != SIM_BO_USERPTR)
			continue;
		if (!sim_os_is_owner())
			return -EPERM;
		ret = sim_os_mm_check(bo->user_addr, bo->size);
		if (ret < 0)
			return ret;
	}
	return 0;
}

void sim_job_release(struct sim_job *job)
{
	sim_bo_list_put(job->render, job->list);
	if (job->context)
		sim_context_put(job->render, job->context);
}

static int job_build(struct sim_job *job, const union drm_amdgpu_cs *args)
{
	u32 i;
	int ret = 0;

	if (!args->in.num_chunks || args->in.num_chunks > MAX_CHUNKS || args->in.flags)
		return -EINVAL;
	job->context = sim_context_get(job->render, args->in.ctx_id);
	if (!job->context)
		return -EINVAL;
	if (args->in.bo_list_handle) {
		job->list = sim_bo_list_get(job->render, args->in.bo_list_handle);
		if (!job->list)
			return -ENOENT;
	}
	for (i = 0; ret == 0 && i < args->in.num_chunks; i++)
		ret = add_chunk(job, args->in.chunks + 8ull * i);
	if (ret < 0)
		return ret;
	return job->num_ibs ? check_user_pages(job->list) : -EINVAL;
}

/* Numbers the job and queues it in one step, so that jobs run in the order of their numbers. */
static int job_enqueue(struct sim_job *job, u64 *ret_sequence)
{
	struct sim_render *render = job->render;
	struct sim_context *context = job->context;

	sim_lock(&render->lock);
	if (__atomic_load_n(&context->guilty, __ATOMIC_RELAXED) || context->leaving) {
		sim_unlock(&render->lock);
		return -ECANCELED;
	}
	job->sequence = ++context->ring[job->ring].last;
	job->submitted_ns = sim_os_now_ns();
	*ret_sequence = job->sequence;
	(void)__atomic_add_fetch(&render->jobs, 1, __ATOMIC_RELAXED);
	sim_job_enter(job);
	sim_os_job_start(job);
	sim_unlock(&render->lock);
	return 0;
}

int sim_cs_submit(struct sim_render *render, union drm_amdgpu_cs *args)
{
	struct sim_job *job;
	u64 sequence = 0;
	int ret;

	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->sim = render->gpu->sim;
	job->render = render;
	job->wait = &render->gpu->job_wait;
	job->holders = 1;
	ret = job_build(job, args);
	if (ret == 0)
		ret = job_enqueue(job, &sequence);
	if (ret < 0) {
		sim_job_release(job);
		free(job);
		return ret;
	}
	memset(args, 0, sizeof(*args));
	args->out.handle = sequence;
	return 0;
}
