// SPDX-License-Identifier: GPL-2.0-only
/* Dma-bufs: the files that hold the buffers' memory, as descriptors of the program. So the program
 * can import a dma-buf of another process like one of its own. */
#include <drm.h>
#include <fcntl.h>
#include <unistd.h>

#include "native.h"

/* Inodes of dma-bufs with a number: no file system has so many. */
#define NUMBERED_INODE (1ull << 62)

void sim_os_dmabuf_get(struct sim_dmabuf *dmabuf)
{
	if (dmabuf->number)
		(void)__atomic_add_fetch(&dmabuf->refs, 1, __ATOMIC_RELAXED);
	else
		sim_os_bo_get(&dmabuf->bo->bo);
}

void sim_os_dmabuf_put(struct sim_dmabuf *dmabuf)
{
	struct native_bo *bo = dmabuf->bo;

	if (dmabuf->number && __atomic_sub_fetch(&dmabuf->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	if (dmabuf->number)
		free(dmabuf);
	native_bo_put(bo);
}

struct sim_bo *sim_os_dmabuf_bo(struct sim_dmabuf *dmabuf)
{
	return &dmabuf->bo->bo;
}

static bool is_exported(struct native *native, struct native_bo *bo)
{
	bool exported;

	(void)pthread_mutex_lock(&native->lock);
	exported = bo->exported;
	(void)pthread_mutex_unlock(&native->lock);
	return exported;
}

/* Makes the memory of @sim_bo a dma-buf, unless it is one. */
static int export(struct sim_bo *sim_bo, bool writable, struct sim_dmabuf **ret_dmabuf)
{
	struct native_bo *bo = native_bo_of(sim_bo_storage(sim_bo));
	struct native *native = native_get();
	int ret;

	if (!is_exported(native, bo)) {
		ret = sim_fault(&native->sim.faults, "drm", "PRIME_EXPORT");
		if (ret < 0)
			return ret;
		if (sim_bo->kind != SIM_BO_MEMORY ||
		    sim_bo->flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID)
			return -EPERM;
		(void)pthread_mutex_lock(&native->lock);
		bo->exported = true;
		bo->writable = writable;
		(void)pthread_mutex_unlock(&native->lock);
	}
	sim_os_bo_get(&bo->bo);
	*ret_dmabuf = &bo->dmabuf;
	return 0;
}

/* Takes over the reference to @bo. */
static int new_numbered(struct native_bo *bo, u64 number, struct sim_dmabuf **ret_dmabuf)
{
	struct sim_dmabuf *dmabuf = calloc(1, sizeof(*dmabuf));

	if (!dmabuf) {
		native_bo_put(bo);
		return -ENOMEM;
	}
	*dmabuf = (struct sim_dmabuf){ .bo = bo, .number = number, .refs = 1 };
	*ret_dmabuf = dmabuf;
	return 0;
}

/* Numbers differ between processes, which have a simulator each. */
int sim_os_dmabuf_new(struct sim_bo *bo, bool writable, struct sim_dmabuf **ret_dmabuf)
{
	static u32 last;
	struct sim_dmabuf *first;
	int ret = export(bo, writable, &first);

	if (ret < 0)
		return ret;
	return new_numbered(first->bo,
			    (u64)native_real_pid() << 32 |
				    __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED),
			    ret_dmabuf);
}

struct sim_dmabuf *sim_os_bo_dmabuf(struct sim_bo *bo)
{
	struct native_bo *storage = native_bo_of(sim_bo_storage(bo));

	if (!is_exported(native_get(), storage))
		return NULL;
	sim_os_bo_get(&storage->bo);
	return &storage->dmabuf;
}

int sim_os_prime_export(struct sim_render *render, u32 handle, bool writable,
			struct sim_dmabuf **ret_dmabuf)
{
	struct sim_bo *bo = sim_os_handle_lookup(render, handle);
	int ret;

	if (!bo)
		return -ENOENT;
	ret = export(bo, writable, ret_dmabuf);
	sim_os_bo_put(bo);
	return ret;
}

/* The text that the kernel's link to a buffer's memory shows. */
struct label {
	u32 gpu_id, domains, poisoned, kfd_flags;
	unsigned long long offset;
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
		      &ret_label->poisoned, &ret_label->kfd_flags, &ret_label->offset) == 5
		       ? 0
		       : -EINVAL;
}

bool native_dmabuf_is_any(int fd)
{
	struct label label;

	return read_label(fd, &label) == 0;
}

/* Looks for a BO of this process first, because reading a label takes long. */
bool native_dmabuf_is_at(int fd, const struct stat *stat)
{
	struct native_id id = { stat->st_dev, stat->st_ino };
	struct native_bo *bo;

	if (stat->st_nlink || !S_ISREG(stat->st_mode))
		return false;
	bo = native_bo_by_id(native_peek(), &id);
	if (!bo)
		return native_dmabuf_is_any(fd);
	native_bo_put(bo);
	return true;
}

u64 native_dmabuf_number(int fd)
{
	off_t position = NATIVE_REAL(lseek)(fd, 0, SEEK_CUR);

	return position < 0 ? 0 : (u64)position;
}

/* A dma-buf has no file type. */
void native_dmabuf_stat(int fd, struct stat *stat)
{
	u64 number = native_dmabuf_number(fd);

	stat->st_mode &= ~(mode_t)S_IFMT;
	if (number)
		stat->st_ino = NUMBERED_INODE | number;
}

/* dma-buf.c: dma_buf_llseek() (6.12) */
bool native_dmabuf_seek(int fd, off_t offset, int whence, off_t *ret_at)
{
	struct stat stat;

	if (fd >= native_fd_lowest_kept() || !native_peek() || NATIVE_REAL(fstat)(fd, &stat) < 0 ||
	    !native_dmabuf_is_at(fd, &stat))
		return false;
	*ret_at = whence == SEEK_END ? stat.st_size : 0;
	if (offset || (whence != SEEK_END && whence != SEEK_SET))
		*ret_at = -EINVAL;
	return true;
}

/* A descriptor of O_PATH would have no position. */
int native_dmabuf_open_link(const char *path)
{
	long long position = 0;
	char text[64] = "";
	int pid, number, fd = -1, length = 0;
	FILE *file;

	if (sscanf(path, "/proc/%d/fd/%d%n", &pid, &number, &length) != 2 || path[length])
		return -1;
	(void)snprintf(text, sizeof(text), "/proc/%d/fdinfo/%d", pid, number);
	file = NATIVE_REAL(fopen)(text, "re");
	if (file && fgets(text, sizeof(text), file) && sscanf(text, "pos: %lld", &position) == 1 &&
	    position)
		fd = NATIVE_REAL(open)(path, O_RDONLY | O_CLOEXEC);
	if (file)
		(void)fclose(file);
	if (fd >= 0 && read_label(fd, &(struct label){ 0 }) == 0) {
		(void)NATIVE_REAL(lseek)(fd, (off_t)position, SEEK_SET);
		return fd;
	}
	if (fd >= 0)
		(void)NATIVE_REAL(close)(fd);
	return -1;
}

/* Enters a buffer of another process. Only its memory file is known here. */
static int adopt(struct native *native, int fd, struct native_bo **ret_bo)
{
	struct sim_bo *sim_bo = NULL;
	struct label label;
	struct stat stat;
	int ret;
	u32 i;

	ret = read_label(fd, &label);
	if (ret < 0)
		return ret;
	if (NATIVE_REAL(fstat)(fd, &stat) < 0)
		return -errno;
	for (i = 0; i < native->sim.num_gpus && !sim_bo; i++)
		if (native->sim.gpus[i].gpu_id == label.gpu_id)
			sim_bo = sim_os_bo_new(&native->sim.gpus[i], (u64)stat.st_size);
	if (!sim_bo)
		return -EINVAL;
	/* the engine writes to it whatever the descriptor is good for */
	ret = native_fd_reopen(fd, O_RDWR);
	if (ret < 0) {
		sim_os_bo_put(sim_bo);
		return ret;
	}
	sim_bo->domains = label.domains;
	sim_bo->kfd_flags = label.kfd_flags;
	sim_bo->background = label.poisoned ? native->sim.poison_page : native->sim.zero_page;
	sim_bo->kind = SIM_BO_MEMORY;
	native_bo_of(sim_bo)->fd = ret;
	native_bo_of(sim_bo)->exported = native_bo_of(sim_bo)->writable = true;
	native_bo_move(native, native_bo_of(sim_bo), label.offset);
	native_bo_enter(native, native_bo_of(sim_bo));
	native_holders_forget();
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
	if (ret == 0 && native_dmabuf_number(fd))
		return new_numbered(bo, native_dmabuf_number(fd), ret_dmabuf);
	if (ret == 0)
		*ret_dmabuf = &bo->dmabuf;
	return ret;
}

/* amdgpu_dma_buf.c (6.1, 6.12): amdgpu_gem_prime_import() gives the object itself to files of its
 * own device, a new one that shows the same memory to those of others. */
int sim_os_dmabuf_import(struct sim_dmabuf *dmabuf, struct sim_gpu *gpu, struct sim_bo **ret_bo)
{
	struct sim_bo *origin = &dmabuf->bo->bo, *bo;
	int ret;

	if (sim_gpu_same_device(origin->gpu, gpu)) {
		sim_os_bo_get(origin);
		*ret_bo = origin;
		return 0;
	}
	bo = sim_os_bo_new(gpu, origin->size);
	if (!bo)
		return -ENOMEM;
	sim_bo_set_origin(bo, origin);
	ret = native_bo_show(bo);
	if (ret < 0) {
		sim_os_bo_put(bo);
		return -ENOMEM;
	}
	*ret_bo = bo;
	return 0;
}

/* Reserves the number immediately, with a placeholder descriptor of a zero page. */
int sim_os_fd_reserve(bool cloexec)
{
	u64 offset;
	int fd = fcntl(native_page_find(native_get()->sim.zero_page, &offset),
		       cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);

	/* EINVAL: the limit is 0. */
	return fd >= 0 ? fd : errno == EINVAL ? -EMFILE : -errno;
}

void sim_os_fd_cancel(int fd)
{
	(void)NATIVE_REAL(close)(fd);
}

void sim_os_fd_install(int fd, struct sim_dmabuf *dmabuf)
{
	const struct native_bo *bo = dmabuf->bo;
	int flags = fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
	/* not our own open file: its lock would outlive this process in each process that has the
	 * descriptor */
	int source = native_fd_reopen(bo->fd, bo->writable ? O_RDWR : O_RDONLY);

	if (source < 0 || NATIVE_REAL(lseek)(source, (off_t)dmabuf->number, SEEK_SET) < 0 ||
	    NATIVE_REAL(dup3)(source, fd, flags) < 0)
		abort(); /* a reserved number always takes a file */
	(void)NATIVE_REAL(close)(source);
	native_holders_note(fd);
}

int native_prime_to_fd(struct native_render *render, u32 handle, u32 flags, int *ret_fd)
{
	struct sim_dmabuf *dmabuf;
	int ret;

	if (flags & ~(u32)(DRM_CLOEXEC | DRM_RDWR))
		return -EINVAL;
	ret = sim_os_prime_export(&render->render, handle, (flags & DRM_RDWR) != 0, &dmabuf);
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

static int import(struct native_render *render, struct sim_dmabuf *dmabuf, u32 *ret_handle)
{
	struct sim_gpu *gpu = render->render.gpu;
	struct sim_bo *bo = NULL;
	int ret;

	*ret_handle = native_handle_find(render, dmabuf->bo);
	if (*ret_handle)
		return 0;
	ret = sim_fault(&gpu->sim->faults, "drm", "PRIME_IMPORT");
	if (ret == 0)
		ret = sim_os_dmabuf_import(dmabuf, gpu, &bo);
	if (ret < 0)
		return ret;
	/* amdgpu_gem.c (7.2): amdgpu_gem_object_open() */
	if (render->render.compute && sim_bo_is_refused_in_hive(bo))
		ret = -EINVAL;
	else
		ret = sim_os_handle_create(&render->render, bo, ret_handle);
	sim_os_bo_put(bo);
	return ret;
}

int sim_os_prime_import(struct sim_render *render, int fd, u32 *ret_handle)
{
	struct sim_dmabuf *dmabuf;
	int ret;

	ret = sim_os_dmabuf_from_fd(fd, &dmabuf);
	if (ret < 0)
		return ret;
	ret = import(native_render_of(render), dmabuf, ret_handle);
	sim_os_dmabuf_put(dmabuf);
	return ret;
}
