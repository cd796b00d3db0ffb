// SPDX-License-Identifier: GPL-2.0-only
/* Contexts and buffer lists of a render file: numbers, references, and the ioctls that create and
 * free them. cs.c has the submission. */
#include "cs.h"

#define MAX_LIST     131072u
#define MAX_CONTEXTS 4096u

void sim_context_put(struct sim_render *render, struct sim_context *context)
{
	bool last;

	sim_lock(&render->lock);
	last = --context->references == 0;
	sim_unlock(&render->lock);
	if (!last)
		return;
	free(context);
	sim_count(render->gpu->sim, SIM_COUNT_CONTEXTS, -1);
}

struct sim_context *sim_context_get(struct sim_render *render, u32 id)
{
	struct sim_context *context;

	sim_lock(&render->lock);
	context = sim_ids_get(&render->contexts, id);
	if (context)
		context->references++;
	sim_unlock(&render->lock);
	return context;
}

void sim_bo_list_put(struct sim_render *render, struct sim_bo_list *list)
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
	free(list);
	sim_count(render->gpu->sim, SIM_COUNT_BO_LISTS, -1);
}

struct sim_bo_list *sim_bo_list_get(struct sim_render *render, u32 id)
{
	struct sim_bo_list *list;

	sim_lock(&render->lock);
	list = sim_ids_get(&render->bo_lists, id);
	if (list)
		list->references++;
	sim_unlock(&render->lock);
	return list;
}

static int context_alloc(struct sim_render *render, union drm_amdgpu_ctx *args)
{
	struct sim_context *context;
	u32 id = 0;
	int ret;

	if (args->in.flags)
		return -EINVAL;
	context = calloc(1, sizeof(*context));
	if (!context)
		return -ENOMEM;
	context->references = 1;
	context->resets = __atomic_load_n(&render->gpu->resets, __ATOMIC_RELAXED);
	sim_lock(&render->lock);
	ret = sim_ids_add(&render->contexts, context, MAX_CONTEXTS, &id);
	sim_unlock(&render->lock);
	if (ret < 0) {
		free(context);
		return ret;
	}
	sim_count(render->gpu->sim, SIM_COUNT_CONTEXTS, 1);
	memset(args, 0, sizeof(*args));
	args->out.alloc.ctx_id = id;
	return 0;
}

static int context_free(struct sim_render *render, u32 id)
{
	struct sim_context *context;

	sim_lock(&render->lock);
	context = sim_ids_remove(&render->contexts, id);
	if (context)
		__atomic_store_n(&context->leaving, true, __ATOMIC_RELAXED);
	sim_unlock(&render->lock);
	if (!context)
		return -EINVAL;
	sim_jobs_drop(render, context);
	sim_context_put(render, context);
	return 0;
}

static bool is_in_reset(const struct sim_gpu *gpu)
{
	return SIM_KNOB(gpu->sim, fault_queries) &&
	       SIM_KNOB(gpu->sim, in_reset) & 1ull << gpu->index;
}

/* Linux 6.1 to 7.3 compare a count that is cached with that of the context, which begins as 0
 * (amdgpu_ctx_init()). A query starts a work that refreshes the cache 3 seconds later
 * (amdgpu_ras_counte_dw() in amdgpu/amdgpu_ras.c). Here that time has passed before the next query.
 */
static bool has_memory_error(struct sim_gpu *gpu, struct sim_context *context)
{
	s64 errors = sim_gpu_memory_errors(gpu);
	u32 cached;

	if (errors < 0)
		return false;
	cached = __atomic_exchange_n(&gpu->cached_memory_errors, (u32)errors, __ATOMIC_RELAXED);
	return __atomic_exchange_n(&context->memory_errors, cached, __ATOMIC_RELAXED) != cached;
}

/* amdgpu_ctx_query2() in amdgpu/amdgpu_ctx.c: each query reports a reset since the context was
 * made. */
static u32 query_flags(const struct sim_render *render, struct sim_context *context)
{
	u32 flags = 0;

	if (__atomic_load_n(&context->guilty, __ATOMIC_RELAXED))
		flags |= AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_GUILTY;
	if (__atomic_load_n(&render->gpu->resets, __ATOMIC_RELAXED) != context->resets)
		flags |= AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST;
	if (is_in_reset(render->gpu))
		flags |= DRM_CTX_IN_PROGRESS;
	if (has_memory_error(render->gpu, context))
		flags |= AMDGPU_CTX_QUERY2_FLAGS_RAS_UE;
	return flags;
}

static int context_query(struct sim_render *render, union drm_amdgpu_ctx *args)
{
	struct sim_context *context = sim_context_get(render, args->in.ctx_id);
	bool newer = args->in.op == AMDGPU_CTX_OP_QUERY_STATE2;
	bool guilty;
	u32 flags;

	if (!context)
		return -EINVAL;
	guilty = __atomic_load_n(&context->guilty, __ATOMIC_RELAXED);
	flags = newer ? query_flags(render, context) : 0;
	sim_context_put(render, context);
	memset(args, 0, sizeof(*args));
	args->out.state.flags = flags;
	if (guilty && !newer)
		args->out.state.reset_status = 1;
	return 0;
}

int sim_cs_context(struct sim_render *render, union drm_amdgpu_ctx *args)
{
	switch (args->in.op) {
	case AMDGPU_CTX_OP_ALLOC_CTX:
		return context_alloc(render, args);
	case AMDGPU_CTX_OP_FREE_CTX:
		return context_free(render, args->in.ctx_id);
	case AMDGPU_CTX_OP_QUERY_STATE:
	case AMDGPU_CTX_OP_QUERY_STATE2:
		return context_query(render, args);
	default:
		return -EINVAL;
	}
}

static int list_fill(struct sim_render *render, struct sim_bo_list *list,
		     const struct sim_bo_list_in *in)
{
	u32 i;

	for (i = 0; i < in->bo_number; i++) {
		struct drm_amdgpu_bo_list_entry entry;

		if (sim_os_copy_from_user(&entry, in->bo_info_ptr + (u64)i * in->bo_info_size,
					  sizeof(entry)) < 0)
			return -EFAULT;
		list->bos[i] = sim_os_handle_lookup(render, entry.bo_handle);
		if (!list->bos[i])
			return -ENOENT;
		list->count++;
		if (list->bos[i]->kind == SIM_BO_USERPTR && !sim_os_is_owner())
			return -EPERM;
	}
	return 0;
}

static int compare_bos(const void *a, const void *b)
{
	const struct sim_bo *one = *(struct sim_bo *const *)a, *other = *(struct sim_bo *const *)b;

	return (one > other) - (one < other);
}

int sim_bo_list_new(struct sim_render *render, const struct sim_bo_list_in *in,
		    struct sim_bo_list **ret_list)
{
	struct sim_bo_list *list;
	int ret;

	if (in->bo_number > MAX_LIST || in->bo_info_size < sizeof(struct drm_amdgpu_bo_list_entry))
		return -EINVAL;
	list = calloc(1, sizeof(*list) + (u64)in->bo_number * sizeof(list->bos[0]));
	if (!list)
		return -ENOMEM;
	list->references = 1;
	sim_count(render->gpu->sim, SIM_COUNT_BO_LISTS, 1);
	ret = list_fill(render, list, in);
	if (ret < 0) {
		sim_bo_list_put(render, list);
		return ret;
	}
	/* as sim_client needs it: the engine searches lists of thousands for each packet */
	qsort(list->bos, list->count, sizeof(list->bos[0]), compare_bos);
	*ret_list = list;
	return 0;
}

static int list_create(struct sim_render *render, const struct sim_bo_list_in *in, u32 *ret_id)
{
	struct sim_bo_list *list;
	int ret;

	ret = sim_bo_list_new(render, in, &list);
	if (ret < 0)
		return ret;
	sim_lock(&render->lock);
	ret = sim_ids_add(&render->bo_lists, list, ~0u, ret_id);
	sim_unlock(&render->lock);
	if (ret < 0)
		sim_bo_list_put(render, list);
	return ret;
}

static int list_destroy(struct sim_render *render, u32 id)
{
	struct sim_bo_list *list;

	sim_lock(&render->lock);
	list = sim_ids_remove(&render->bo_lists, id);
	sim_unlock(&render->lock);
	sim_bo_list_put(render, list);
	return list ? 0 : -ENOENT;
}

int sim_cs_bo_list(struct sim_render *render, union drm_amdgpu_bo_list *args)
{
	struct sim_bo_list_in in;
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
	default:
		return -EINVAL;
	}
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.list_handle = id;
	return 0;
}

void sim_cs_objects_release(struct sim_render *render)
{
	struct sim_context *context;
	struct sim_bo_list *list;
	u32 id;

	id = 0;
	while ((context = sim_ids_next(&render->contexts, &id))) {
		(void)sim_ids_remove(&render->contexts, id);
		sim_context_put(render, context);
	}
	id = 0;
	while ((list = sim_ids_next(&render->bo_lists, &id))) {
		(void)sim_ids_remove(&render->bo_lists, id);
		sim_bo_list_put(render, list);
	}
}
