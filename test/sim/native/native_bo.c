// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers as objects: references, places for mmap(), handles of render files, and dma-bufs, which are the files that
 * hold the buffers' memory. So a dma-buf that comes from another process can be imported like one of our own.
 */
#include <dirent.h>
#include <drm.h>
#include <fcntl.h>
#include <unistd.h>

#include "native.h"

#define FIRST_OFFSET 0x100000000ull
#define OFFSET_STEPS 4096u

static u32 bucket_of_id(const struct native_id *id)
{
	return (u32)id->inode % NATIVE_BUCKETS;
}

static u32 bucket_of_offset(u64 offset)
{
	return (u32)(offset / SIM_PAGE_SIZE * 0x9e3779b1u) % NATIVE_BUCKETS;
}

/* One more reference, unless the last one is being given up. */
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
		if (bo->offset == offset && bo->bo.gpu == gpu && get_unless_gone(bo))
			break;
	(void)pthread_mutex_unlock(&native->lock);
	return bo;
}

/* Makes the buffer known by its memory. */
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

static void leave(struct native *native, struct native_bo *bo)
{
	struct native_bo **link;

	(void)pthread_mutex_lock(&native->lock);
	for (link = &native->by_offset[bucket_of_offset(bo->offset)]; *link != bo;
	     link = &(*link)->next_by_offset)
		;
	*link = bo->next_by_offset;
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
	sim_bo_done(&bo->bo);
	free(bo);
}

/* Offsets are never used twice, and begin elsewhere in each process: who takes the old one for the new one is to be
 * found out. */
struct sim_bo *sim_os_bo_new(struct sim_gpu *gpu, u64 size_bytes)
{
	struct native_bo *bo = calloc(1, sizeof(*bo));
	struct native *native = native_get();
	u64 *next = &native->next_offset[gpu->index];
	u32 bucket;

	if (!bo)
		return NULL;
	bo->refs = 1;
	bo->fd = -1;
	sim_bo_init(&bo->bo, gpu, size_bytes);
	(void)pthread_mutex_lock(&native->lock);
	if (!*next)
		*next = FIRST_OFFSET + (u32)native->mm.pid % OFFSET_STEPS * SIM_PAGE_SIZE;
	bo->offset = *next;
	*next += size_bytes;
	bucket = bucket_of_offset(bo->offset);
	bo->next_by_offset = native->by_offset[bucket];
	native->by_offset[bucket] = bo;
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

/* The entry of @render, made if @create; under native->lock. */
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

/* @seen: the buffer by whose dma-buf this one is found again, itself but for those of other GPUs. Under native->lock. */
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

void native_handles_close(struct native_render *render)
{
	u32 handle;

	while ((handle = sim_os_handle_next(&render->render, 1)))
		(void)native_handle_close(render, handle);
}

/* A dma-buf is the buffer itself: its memory is the file, and lives as long as a descriptor of it. */
void sim_os_dmabuf_get(struct sim_dmabuf *dmabuf)
{
	sim_os_bo_get((struct sim_bo *)dmabuf);
}

void sim_os_dmabuf_put(struct sim_dmabuf *dmabuf)
{
	sim_os_bo_put((struct sim_bo *)dmabuf);
}

struct sim_bo *sim_os_dmabuf_bo(struct sim_dmabuf *dmabuf)
{
	return (struct sim_bo *)dmabuf;
}

static bool is_exported(struct native *native, struct native_bo *bo)
{
	bool exported;

	(void)pthread_mutex_lock(&native->lock);
	exported = bo->exported;
	(void)pthread_mutex_unlock(&native->lock);
	return exported;
}

int sim_os_dmabuf_export(struct sim_bo *sim_bo, bool writable, struct sim_dmabuf **ret_dmabuf)
{
	struct native_bo *bo = native_bo_of(sim_bo_storage(sim_bo));
	struct native *native = native_get();
	int ret;

	if (!is_exported(native, bo)) {
		ret = sim_fault(&native->sim.faults, "drm", "PRIME_EXPORT");
		if (ret < 0)
			return ret;
		if (sim_bo->kind != SIM_BO_MEMORY || sim_bo->flags & DRM_BO_VM_ALWAYS_VALID)
			return -EPERM;
		(void)pthread_mutex_lock(&native->lock);
		bo->exported = true;
		bo->writable = writable;
		(void)pthread_mutex_unlock(&native->lock);
	}
	sim_os_bo_get(&bo->bo);
	*ret_dmabuf = (struct sim_dmabuf *)&bo->bo;
	return 0;
}

/* What the kernel's link to a buffer's memory says of it. */
struct label {
	u32 gpu_id, domains, poisoned;
};

static int read_label(int fd, struct label *ret_label)
{
	char path[64], target[256];
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = NATIVE_REAL(readlink)(path, target, sizeof(target) - 1);
	if (length < 0)
		return -EBADF;
	target[length] = '\0';
	return sscanf(target, "/memfd:" NATIVE_BO_NAME, &ret_label->gpu_id, &ret_label->domains,
		      &ret_label->poisoned) == 3
		       ? 0
		       : -EINVAL;
}

bool native_bo_is_file_of_another_process(int fd, const struct stat *stat)
{
	struct label label;

	return !stat->st_nlink && S_ISREG(stat->st_mode) && read_label(fd, &label) == 0;
}

/* A buffer of another process: the memory is all that there is to know of it. */
static int adopt(struct native *native, int fd, struct native_bo **ret_bo)
{
	struct sim_bo *sim_bo = NULL;
	struct label label;
	char path[64];
	off_t size;
	int ret;
	u32 i;

	ret = read_label(fd, &label);
	if (ret < 0)
		return ret;
	size = lseek(fd, 0, SEEK_END);
	for (i = 0; i < native->sim.num_gpus && !sim_bo; i++)
		if (native->sim.gpus[i].gpu_id == label.gpu_id)
			sim_bo = sim_os_bo_new(&native->sim.gpus[i], (u64)size);
	if (!sim_bo)
		return -EINVAL;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* the engine writes to it whatever the descriptor is good for */
	fd = NATIVE_REAL(open)(path, O_RDWR | O_CLOEXEC);
	ret = fd < 0 ? -errno : native_fd_keep(fd);
	if (fd >= 0)
		(void)NATIVE_REAL(close)(fd);
	if (ret < 0) {
		sim_os_bo_put(sim_bo);
		return ret;
	}
	sim_bo->domains = label.domains;
	sim_bo->background = label.poisoned ? native->sim.poison_page : native->sim.zero_page;
	sim_bo->kind = SIM_BO_MEMORY;
	native_bo_of(sim_bo)->fd = ret;
	native_bo_of(sim_bo)->exported = native_bo_of(sim_bo)->writable = true;
	native_bo_enter(native, native_bo_of(sim_bo));
	*ret_bo = native_bo_of(sim_bo);
	return 0;
}

int sim_os_dmabuf_from_fd(int fd, struct sim_dmabuf **ret_dmabuf)
{
	struct native *native = native_get();
	struct native_bo *bo = NULL;
	struct native_id id;
	int ret;

	if (native_fd_identify(fd, &id) < 0)
		return -EBADF;
	bo = native_bo_by_id(native, &id);
	ret = bo ? 0 : adopt(native, fd, &bo);
	if (ret == 0)
		*ret_dmabuf = (struct sim_dmabuf *)&bo->bo;
	return ret;
}

int sim_os_dmabuf_import(struct sim_dmabuf *dmabuf, struct sim_gpu *gpu, struct sim_bo **ret_bo)
{
	struct sim_bo *origin = (struct sim_bo *)dmabuf, *bo;

	if (origin->gpu == gpu) {
		sim_os_bo_get(origin);
		*ret_bo = origin;
		return 0;
	}
	bo = sim_os_bo_new(gpu, origin->size);
	if (!bo)
		return -ENOMEM;
	sim_bo_set_origin(bo, origin);
	*ret_bo = bo;
	return 0;
}

/* The number is taken at once, by a descriptor that is good for nothing. */
int sim_os_fd_reserve(bool cloexec)
{
	u64 offset;
	int fd = fcntl(native_page_find(native_get()->sim.zero_page, &offset),
		       cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);

	return fd < 0 ? -errno : fd;
}

void sim_os_fd_cancel(int fd)
{
	(void)NATIVE_REAL(close)(fd);
}

void sim_os_fd_install(int fd, struct sim_dmabuf *dmabuf)
{
	struct native_bo *bo = native_bo_of((struct sim_bo *)dmabuf);
	int flags = fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
	int source = bo->fd;
	char path[64];

	if (!bo->writable) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", bo->fd);
		source = NATIVE_REAL(open)(path, O_RDONLY | O_CLOEXEC);
	}
	if (NATIVE_REAL(dup3)(source, fd, flags) < 0)
		abort(); /* a reserved number always takes a file */
	if (source != bo->fd)
		(void)NATIVE_REAL(close)(source);
}

int native_prime_to_fd(struct native_render *render, u32 handle, u32 flags, int *ret_fd)
{
	struct sim_bo *bo = sim_os_handle_lookup(&render->render, handle);
	struct sim_dmabuf *dmabuf;
	int ret;

	if (!bo)
		return -ENOENT;
	ret = flags & ~(u32)(DRM_CLOEXEC | DRM_RDWR)
		      ? -EINVAL
		      : sim_os_dmabuf_export(bo, (flags & DRM_RDWR) != 0, &dmabuf);
	sim_os_bo_put(bo);
	if (ret < 0)
		return ret;
	ret = sim_os_fd_reserve((flags & DRM_CLOEXEC) != 0);
	if (ret >= 0) {
		sim_os_fd_install(ret, dmabuf);
		*ret_fd = ret;
	}
	sim_os_dmabuf_put(dmabuf);
	return ret < 0 ? ret : 0;
}

/* A buffer has one handle in a file, however often it comes. */
static u32 find_handle(struct native_render *render, struct native_bo *bo)
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

static int import(struct native_render *render, struct sim_dmabuf *dmabuf, u32 *ret_handle)
{
	struct sim_gpu *gpu = render->render.gpu;
	struct sim_bo *bo = NULL;
	int ret;

	*ret_handle = find_handle(render, native_bo_of((struct sim_bo *)dmabuf));
	if (*ret_handle)
		return 0;
	ret = sim_fault(&gpu->sim->faults, "drm", "PRIME_IMPORT");
	if (ret == 0)
		ret = sim_os_dmabuf_import(dmabuf, gpu, &bo);
	if (ret < 0)
		return ret;
	ret = sim_os_handle_create(&render->render, bo, ret_handle);
	sim_os_bo_put(bo);
	return ret;
}

int native_prime_to_handle(struct native_render *render, int fd, u32 *ret_handle)
{
	struct sim_dmabuf *dmabuf;
	int ret;

	ret = sim_os_dmabuf_from_fd(fd, &dmabuf);
	if (ret < 0)
		return ret;
	ret = import(render, dmabuf, ret_handle);
	sim_os_dmabuf_put(dmabuf);
	return ret;
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

/* Descriptors of the library's own are not counted; they lie above those of the program. */
u32 native_bo_count_dmabufs(struct native *native)
{
	DIR *stream = NATIVE_REAL(opendir)("/proc/self/fd");
	struct dirent *entry;
	u32 count = 0;

	(void)native;
	while (stream && (entry = readdir(stream))) {
		int fd = atoi(entry->d_name);
		struct label label;

		if (fd > 2 && fd < native_fd_lowest_kept() && read_label(fd, &label) == 0)
			count++;
	}
	if (stream)
		(void)closedir(stream);
	return count;
}
