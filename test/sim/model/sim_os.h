/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions that the model needs from its environment. Each front end implements them. The
 * model uses no other function of its environment. */
#ifndef SIM_OS_H
#define SIM_OS_H

#include "sim_env.h"

#define SIM_PAGE_SIZE 4096ull

struct sim;
struct sim_bo;
struct sim_gpu;
struct sim_job;
struct sim_dmabuf;  /* a dma-buf, owned by the front end */
struct sim_process; /* process.h */
struct sim_queue;   /* the same */
struct sim_render;  /* render.h */
struct sim_share;   /* process.h */

/* One page of 4096 bytes, not initialised, aligned, or NULL. */
void *sim_os_page_alloc(void);
void sim_os_page_free(void *page);

/* Monotonic time in ns, and a sleep. */
u64 sim_os_now_ns(void);
void sim_os_sleep_us(u32 us);

#define SIM_FOREVER (~0ull)
/* Sleeps until @done(@arg) is true (0), or until the absolute time @deadline_ns (-ETIME). @done
 * runs without a lock of the caller and may take locks. */
int sim_os_wait(struct sim_wait *wait, bool (*done)(void *arg), void *arg, u64 deadline_ns);
void sim_os_wake(struct sim_wait *wait);

/* The caller's memory: 0 or -EFAULT. May sleep, so the caller must not hold the lock of a BO or VM.
 */
int sim_os_copy_from_user(void *dst, u64 src, u64 size_bytes);
int sim_os_copy_to_user(u64 dst, const void *src, u64 size_bytes);

/* Whether the caller has mapped [addr, addr+size): -EFAULT; -ESRCH: it is not the owner. */
int sim_os_mm_check(u64 addr, u64 size_bytes);
/* The pages of the caller's memory become those of the buffer, for copies to come. */
int sim_os_bo_pin_user(struct sim_bo *bo);
/* Whether the caller's first mapping at or after @addr is one of a file. */
bool sim_os_mm_has_file(u64 addr);

/* Buffers: the front end's object embeds a struct sim_bo (bo.h) and counts references. new: one
 * reference; the model calls *_init(). The last put calls sim_bo_done(). */
struct sim_bo *sim_os_bo_new(struct sim_gpu *gpu, u64 size_bytes);
void sim_os_bo_get(struct sim_bo *bo);
void sim_os_bo_put(struct sim_bo *bo);
/* The offset by which the render node's mmap() finds this buffer, or 0 if it has no offset. */
u64 sim_os_bo_mmap_offset(struct sim_bo *bo);
/* Whether @render may map the buffer without a handle. */
int sim_os_bo_allow(struct sim_bo *bo, struct sim_render *render);
void sim_os_bo_disallow(struct sim_bo *bo, struct sim_render *render);

/* GEM handles of a render file. lookup: with a reference, or NULL. create: the handle has a
 * reference of its own. delete: ignores an unused number. next: the smallest handle >= @from, or 0
 * after the last. */
struct sim_bo *sim_os_handle_lookup(struct sim_render *render, u32 handle);
int sim_os_handle_create(struct sim_render *render, struct sim_bo *bo, u32 *ret_handle);
void sim_os_handle_delete(struct sim_render *render, u32 handle);
u32 sim_os_handle_next(struct sim_render *render, u32 from);
/* The file that KFD itself has open on the device of @gpu. */
struct sim_render *sim_os_kfd_client(struct sim_gpu *gpu);

/* PRIME of a render file. export: the one dma-buf of the handle's object, with a reference;
 * @writable is the mode of its file when it is made; -ENOENT: no such handle. import: the file's
 * handle of the dma-buf's object, or a new one: -EBADF; -EINVAL: not a dma-buf. */
int sim_os_prime_export(struct sim_render *render, u32 handle, bool writable,
			struct sim_dmabuf **ret_dmabuf);
int sim_os_prime_import(struct sim_render *render, int fd, u32 *ret_handle);

/* dma-bufs. new: a new one, even if the buffer has others. */
int sim_os_dmabuf_new(struct sim_bo *bo, bool writable, struct sim_dmabuf **ret_dmabuf);
/* The one that PRIME has made or imported for the buffer, with a reference; NULL: none. */
struct sim_dmabuf *sim_os_bo_dmabuf(struct sim_bo *bo);
void sim_os_dmabuf_get(struct sim_dmabuf *dmabuf);
void sim_os_dmabuf_put(struct sim_dmabuf *dmabuf);
/* So many more buffers of KFD hold it, for its fdinfo. */
void sim_os_dmabuf_count_mem(struct sim_dmabuf *dmabuf, int change);
/* The dma-buf of a descriptor of the caller: -EBADF; -EINVAL: not a dma-buf. */
int sim_os_dmabuf_from_fd(int fd, struct sim_dmabuf **ret_dmabuf);
/* The exporter's buffer, borrowed from the dma-buf; NULL: of another driver. */
struct sim_bo *sim_os_dmabuf_bo(struct sim_dmabuf *dmabuf);
/* The buffer as @gpu has it, with a reference: the exporter's on one device, a new one that shows
 * its memory on another. -EINVAL: of another driver. */
int sim_os_dmabuf_import(struct sim_dmabuf *dmabuf, struct sim_gpu *gpu, struct sim_bo **ret_bo);
/* Share handles of processes that this simulator does not have, but that the front end knows.
 * enter: -EINVAL: another process has entered the handle. find: with a reference; -EINVAL: none. */
int sim_os_share_enter(struct sim_dmabuf *dmabuf, const struct sim_share *share);
int sim_os_share_find(const u32 *handle, struct sim_share *ret_share,
		      struct sim_dmabuf **ret_dmabuf);
void sim_os_share_leave(const u32 *handle);
/* Descriptors of the caller: reserved first, then either installed, which cannot fail, or
 * cancelled. */
int sim_os_fd_reserve(bool cloexec);
void sim_os_fd_cancel(int fd);
void sim_os_fd_install(int fd, struct sim_dmabuf *dmabuf);

/* The render file of a descriptor of the caller, with a reference to the open file; NULL: it is no
 * simulated render node. */
struct sim_render *sim_os_render_from_fd(int fd);
void sim_os_render_put(struct sim_render *render);

/* Runs sim_job_run() (render.h) later, in another thread; jobs of one GPU and ring in this order.
 */
void sim_os_job_start(struct sim_job *job);
/* The packets of @job have been executed: calls sim_job_finish() once their copies have ended, from
 * any thread, for the jobs of a ring in their order. */
void sim_os_job_copied(struct sim_job *job);

/* The caller. */
bool sim_os_is_owner(void); /* the process whose machine this is, not a child that it has made */

/* Processes. find: by pid in the caller's name space, with a reference; NULL none. */
struct sim_process *sim_os_process_find(u32 pid);
void sim_os_process_put(struct sim_process *process);
u32 sim_os_process_pid(struct sim_process *process); /* in the process's innermost pid namespace */
/* Calls sim_criu_resume_work() (process.h) soon, in another thread. The process stays until then.
 */
void sim_os_resume_start(struct sim_process *process);

#endif
