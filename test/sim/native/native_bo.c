// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers as objects: references, places for mmap(), and handles of render files. Their bytes are
 * in native_data.c, descriptors of them in native_dmabuf.c. */

#include <unistd.h>

#include "native.h"
#include "native_cuda.h"

#define FIRST_OFFSET 0x100000000ull
#define OFFSET_STEPS 4096u
#define OFFSET_STEP  (1ull << 34)

static u32 bucket_of_id(const struct native_id *id)
{
	return (u32)id->inode % NATIVE_BUCKETS;
}

static u32 bucket_of_offset(u64 offset)
{
	return (u32)(offset / SIM_PAGE_SIZE * 0x9e3779b1u) % NATIVE_BUCKETS;
}

/* Takes one more reference, unless the last one is being dropped. */
static bool get_unless_gone(struct native_bo *bo)
{
	u32 refs = __atomic_load_n(&bo->refs, __ATOMIC_RELAXED);

	while (refs)
		if (__atomic_compare_exchange_n(&bo->refs, &refs, refs + 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

struct native_bo *native_bo_by_id(struct native *native, const struct native_id *id)
{
	struct native_bo *bo;

	(void)pthread_mutex_lock(&native->lock);
	for (bo = native->by_id[bucket_of_id(id)]; bo; bo = bo->next_by_id)
		if (native_id_equal(&bo->id, id) && get_unless_gone(bo))
			break;
	(void)pthread_mutex_unlock(&native->lock);
	return bo;
}

struct native_bo *native_bo_by_offset(struct native *native, const struct sim_gpu *gpu, u64 offset)
{
	struct native_bo *bo;

	(void)pthread_mutex_lock(&native->lock);
	for (bo = native->by_offset[bucket_of_offset(offset)]; bo; bo = bo->next_by_offset)
		if (bo->offset == offset && sim_gpu_same_device(bo->bo.gpu, gpu) &&
		    get_unless_gone(bo))
			break;
	(void)pthread_mutex_unlock(&native->lock);
	return bo;
}

/* Registers the buffer under the identity of its memory. */
void native_bo_enter(struct native *native, struct native_bo *bo)
{
	u32 bucket;

	(void)native_fd_identify(bo->fd, &bo->id);
	bucket = bucket_of_id(&bo->id);
	(void)pthread_mutex_lock(&native->lock);
	bo->next_by_id = native->by_id[bucket];
	native->by_id[bucket] = bo;
	(void)pthread_mutex_unlock(&native->lock);
}

/* The CPU may map such a buffer, but not touch the mapping, which is one of a file without bytes.
 */
int native_bo_show(struct sim_bo *bo)
{
	struct native_bo *shown = native_bo_of(bo), *origin = native_bo_of(bo->origin);
	struct native *native = native_get();

	shown->fd = native_fd_memory("amdgpu_sim.import", 0);
	if (shown->fd >= 0)
		native_bo_enter(native, shown);
	(void)pthread_mutex_lock(&native->lock);
	shown->next_shown = origin->shown;
	origin->shown = shown;
	(void)pthread_mutex_unlock(&native->lock);
	return shown->fd < 0 ? shown->fd : 0;
}

/* Under native->lock. */
static void enter_offset(struct native *native, struct native_bo *bo, u64 offset)
{
	u32 bucket = bucket_of_offset(offset);

	bo->offset = offset;
	bo->next_by_offset = native->by_offset[bucket];
	native->by_offset[bucket] = bo;
}

static void leave_offset(struct native *native, struct native_bo *bo)
{
	struct native_bo **link = &native->by_offset[bucket_of_offset(bo->offset)];

	while (*link != bo)
		link = &(*link)->next_by_offset;
	*link = bo->next_by_offset;
}

static void leave(struct native *native, struct native_bo *bo)
{
	struct native_bo **link;

	(void)pthread_mutex_lock(&native->lock);
	if (bo->bo.origin) {
		for (link = &native_bo_of(bo->bo.origin)->shown; *link != bo;
		     link = &(*link)->next_shown)
			;
		*link = bo->next_shown;
	}
	leave_offset(native, bo);
	if (bo->fd >= 0) {
		for (link = &native->by_id[bucket_of_id(&bo->id)]; *link != bo;
		     link = &(*link)->next_by_id)
			;
		*link = bo->next_by_id;
	}
	(void)pthread_mutex_unlock(&native->lock);
}

void native_bo_put(struct native_bo *bo)
{
	if (__atomic_sub_fetch(&bo->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	leave(native_get(), bo);
	if (bo->bo.origin && bo->fd >= 0)
		(void)NATIVE_REAL(close)(bo->fd);
	native_cuda_bo_done(bo);
	sim_bo_done(&bo->bo);
	free(bo->descriptors.numbers);
	free(bo);
}

void native_bo_move(struct native *native, struct native_bo *bo, u64 offset)
{
	(void)pthread_mutex_lock(&native->lock);
	leave_offset(native, bo);
	enter_offset(native, bo, offset);
	(void)pthread_mutex_unlock(&native->lock);
}

/* The simulator never reuses offsets, and each process has a range of its own. So a stale offset
 * never matches a new buffer, and all processes know a buffer by one offset. Partitions share their
 * offsets (amdgpu_xcp.c: amdgpu_xcp_dev_alloc(), 6.12, 7.2, 7.3). */
struct sim_bo *sim_os_bo_new(struct sim_gpu *gpu, u64 size_bytes)
{
	struct native_bo *bo = calloc(1, sizeof(*bo));
	struct native *native = native_get();
	u64 *next = &native->next_offset[gpu->device];

	if (!bo)
		return NULL;
	bo->refs = 1;
	bo->fd = -1;
	bo->dmabuf.bo = bo;
	sim_lock_init(&bo->written_lock);
	sim_bo_init(&bo->bo, gpu, size_bytes);
	(void)pthread_mutex_lock(&native->lock);
	if (!*next)
		*next = FIRST_OFFSET + (u32)native->pid % OFFSET_STEPS * OFFSET_STEP;
	enter_offset(native, bo, *next);
	*next += size_bytes;
	(void)pthread_mutex_unlock(&native->lock);
	return &bo->bo;
}

void sim_os_bo_get(struct sim_bo *bo)
{
	(void)__atomic_add_fetch(&native_bo_of(bo)->refs, 1, __ATOMIC_RELAXED);
}

void sim_os_bo_put(struct sim_bo *bo)
{
	native_bo_put(native_bo_of(bo));
}

u64 sim_os_bo_mmap_offset(struct sim_bo *bo)
{
	return native_bo_of(bo)->offset;
}

/* Finds the entry of @render and makes it if @create; under native->lock. */
static struct native_user *user_of(struct native_bo *bo, struct native_render *render, bool create)
{
	struct native_user *user;

	for (user = bo->users; user; user = user->next)
		if (user->render == render)
			return user;
	if (!create)
		return NULL;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->render = render;
	user->next = bo->users;
	bo->users = user;
	return user;
}

static void drop_user(struct native_bo *bo, struct native_user *user)
{
	struct native_user **link;

	if (user->allowed || user->handle)
		return;
	for (link = &bo->users; *link != user; link = &(*link)->next)
		;
	*link = user->next;
	free(user);
}

int sim_os_bo_allow(struct sim_bo *bo, struct sim_render *render)
{
	struct native *native = native_get();
	struct native_user *user;

	(void)pthread_mutex_lock(&native->lock);
	user = user_of(native_bo_of(bo), native_render_of(render), true);
	if (user)
		user->allowed++;
	(void)pthread_mutex_unlock(&native->lock);
	return user ? 0 : -ENOMEM;
}

void sim_os_bo_disallow(struct sim_bo *bo, struct sim_render *render)
{
	struct native *native = native_get();
	struct native_user *user;

	(void)pthread_mutex_lock(&native->lock);
	user = user_of(native_bo_of(bo), native_render_of(render), false);
	if (user) {
		user->allowed--;
		drop_user(native_bo_of(bo), user);
	}
	(void)pthread_mutex_unlock(&native->lock);
}

struct sim_bo *sim_os_handle_lookup(struct sim_render *render, u32 handle)
{
	struct native *native = native_get();
	struct native_bo *bo;

	(void)pthread_mutex_lock(&native->lock);
	bo = sim_ids_get(&native_render_of(render)->handles, handle);
	if (bo)
		sim_os_bo_get(&bo->bo);
	(void)pthread_mutex_unlock(&native->lock);
	return bo ? &bo->bo : NULL;
}

/* @seen: the buffer by whose dma-buf this one is found again, itself but for those of
 * other GPUs. Under native->lock. */
static int enter_handle(struct native_render *render, struct native_bo *bo, struct native_bo *seen,
			u32 *ret_handle)
{
	struct native_user *user = user_of(seen, render, true);
	int ret;

	if (!user)
		return -ENOMEM;
	ret = sim_ids_add(&render->handles, bo, 0x7fffffff, ret_handle);
	if (ret == 0)
		user->handle = *ret_handle;
	else
		drop_user(seen, user);
	if (ret == 0 && seen != bo && user_of(bo, render, true))
		user_of(bo, render, true)->handle = *ret_handle;
	return ret;
}

int sim_os_handle_create(struct sim_render *sim_render, struct sim_bo *sim_bo, u32 *ret_handle)
{
	struct native_bo *bo = native_bo_of(sim_bo);
	struct native_bo *seen = sim_bo->origin ? native_bo_of(sim_bo->origin) : bo;
	struct native_render *render = native_render_of(sim_render);
	struct native *native = native_get();
	int ret;

	ret = sim_render_handle_opened(sim_render, sim_bo);
	if (ret < 0)
		return ret;
	(void)pthread_mutex_lock(&native->lock);
	ret = enter_handle(render, bo, seen, ret_handle);
	if (ret == 0)
		sim_os_bo_get(sim_bo);
	(void)pthread_mutex_unlock(&native->lock);
	if (ret < 0)
		sim_render_handle_closed(sim_render, sim_bo);
	return ret;
}

u32 sim_os_handle_next(struct sim_render *render, u32 from)
{
	struct native *native = native_get();
	u32 handle = from;

	(void)pthread_mutex_lock(&native->lock);
	if (!sim_ids_next(&native_render_of(render)->handles, &handle))
		handle = 0;
	(void)pthread_mutex_unlock(&native->lock);
	return handle;
}

static void forget_handle(struct native_bo *bo, struct native_render *render)
{
	struct native_user *user = user_of(bo, render, false);

	if (!user)
		return;
	user->handle = 0;
	drop_user(bo, user);
}

int native_handle_close(struct native_render *render, u32 handle)
{
	struct native *native = native_get();
	struct native_bo *bo;

	(void)pthread_mutex_lock(&native->lock);
	bo = sim_ids_remove(&render->handles, handle);
	if (bo) {
		forget_handle(bo, render);
		if (bo->bo.origin)
			forget_handle(native_bo_of(bo->bo.origin), render);
	}
	(void)pthread_mutex_unlock(&native->lock);
	if (!bo)
		return -EINVAL;
	sim_render_handle_closed(&render->render, &bo->bo);
	native_bo_put(bo);
	return 0;
}

void sim_os_handle_delete(struct sim_render *render, u32 handle)
{
	(void)native_handle_close(native_render_of(render), handle);
}

void native_handles_close(struct native_render *render)
{
	u32 handle;

	while ((handle = sim_os_handle_next(&render->render, 1)))
		(void)native_handle_close(render, handle);
}

u32 native_handle_find(struct native_render *render, struct native_bo *bo)
{
	struct native *native = native_get();
	struct native_user *user;
	u32 handle;

	(void)pthread_mutex_lock(&native->lock);
	user = user_of(bo, render, false);
	handle = user ? user->handle : 0;
	(void)pthread_mutex_unlock(&native->lock);
	return handle;
}

/* drm_prime.c: drm_prime_add_buf_handle() takes one reference for each file with a handle. As long
 * as there is a handle, the object itself has one: export_and_register_object(),
 * drm_gem_prime_fd_to_handle() (6.12). */
static u32 count_handles(struct native_bo *bo, const struct sim_bo *named)
{
	struct native_user *user;
	u32 files = 0, own = 0;

	for (user = bo->users; user; user = user->next) {
		struct native_bo *has =
			user->handle ? sim_ids_get(&user->render->handles, user->handle) : NULL;

		files += has && &has->bo == named;
		own = own || files;
	}
	return files + own;
}

/* amdgpu_dma_buf.c: amdgpu_gem_prime_import() takes one for the attachment of another device's
 * buffer (6.12) */
u32 native_bo_count_prime(struct native_bo *bo)
{
	struct native *native = native_get();
	const struct native_bo *shown;
	u32 count;

	(void)pthread_mutex_lock(&native->lock);
	count = count_handles(bo, &bo->bo);
	for (shown = bo->shown; shown; shown = shown->next_shown)
		count += 1 + count_handles(bo, &shown->bo);
	(void)pthread_mutex_unlock(&native->lock);
	return count;
}

u64 native_bo_count_pages(struct native *native)
{
	struct native_bo *bo;
	struct stat stat;
	u64 blocks = 0;
	u32 i;

	(void)pthread_mutex_lock(&native->lock);
	for (i = 0; i < NATIVE_BUCKETS; i++)
		for (bo = native->by_id[i]; bo; bo = bo->next_by_id)
			if (NATIVE_REAL(fstat)(bo->fd, &stat) == 0)
				blocks += (u64)stat.st_blocks;
	(void)pthread_mutex_unlock(&native->lock);
	return blocks * 512 / SIM_PAGE_SIZE;
}
