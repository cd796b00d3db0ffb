/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared declarations of the native front end: the objects that embed the model's, and each file's
 * entry points. sim_os.h declares the functions that the model calls. amdgpu_sim.h declares the
 * interface for programs. */
#ifndef NATIVE_H
#define NATIVE_H

#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "process.h"
#include "render.h"

#define NATIVE_DRM_MAJOR 226u
#define NATIVE_BUCKETS   65536u
#define NATIVE_TASKS     65u
/* Attributes of a buffer's memory: gpu_id, domains, poisoned, kfd_flags, mmap offset. */
#define NATIVE_BO_NAME "amdgpu_sim.bo.%x.%u.%u.%x.%llx"

/* The function of the C library (or of a sanitizer) that this library's function overrides. */
#define NATIVE_REAL(name)                                                               \
	({                                                                              \
		static __typeof__(&name) real_;                                         \
		__typeof__(&name) found_ = __atomic_load_n(&real_, __ATOMIC_RELAXED);   \
                                                                                        \
		if (!found_) {                                                          \
			found_ = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name); \
			__atomic_store_n(&real_, found_, __ATOMIC_RELAXED);             \
		}                                                                       \
		found_;                                                                 \
	})

/* Identifies a file, whatever descriptor leads to it. */
struct native_id {
	dev_t device;
	ino_t inode;
};

/* The handle of a buffer in an open render file, and whether the file may map the buffer. */
struct native_user {
	struct native_user *next;
	struct native_render *render;
	u32 handle; /* 0: none */
	u32 allowed;
};

struct native_bo;

/* A dma-buf. A buffer has one without a number. Kernels that make a dma-buf at each export number
 * the others. A descriptor of a dma-buf is one of the buffer's memory, and its position is the
 * number: a position goes wherever the descriptor goes, and nothing else needs it. */
struct sim_dmabuf {
	struct native_bo *bo;
	u64 number;
	u32 refs; /* atomic; not used without a number */
	u32 mems; /* buffers of KFD that hold it; atomic */
	u32 seen; /* the same, counted again by a check */
};

/* Descriptors of the program that have been seen to be a buffer's dma-buf. */
struct native_descriptors {
	int *numbers;
	u32 count, room;
};

/* A buffer. A memory file holds its bytes, and that file is also its dma-buf. */
struct native_bo {
	struct sim_bo bo;
	struct sim_dmabuf dmabuf; /* the one without a number */
	u32 refs;                 /* atomic */
	int fd;                   /* -1: no memory of its own */
	struct native_id id;
	u64 offset; /* for mmap() of the render node */
	char *map;  /* all of it, if it was mapped for a pointer; under bo.lock */
	struct sim_lock written_lock;
	u64 written_from,
		written_to; /* a part that is known to have been written, which stays so */
	/* under native->lock: */
	struct native_bo *next_by_offset, *next_by_id;
	struct native_user *users;
	struct native_bo *shown, *next_shown; /* buffers of other devices that show its memory */
	bool exported, writable;              /* as a dma-buf */
	/* native_cuda.c: memory of a CUDA device, or memory that is registered with it */
	u64 device_memory; /* 0: none */
	bool registered;
	struct native_descriptors descriptors; /* native_holders.c, under its lock */
};

enum native_kind { NATIVE_KFD, NATIVE_RENDER, NATIVE_FOREIGN };

/* An open file. The program has one end of a pair of sockets and may pass it on to other processes.
 * When all descriptors of that end are closed, the peer end reports a hangup. */
struct native_file {
	struct native_file *next; /* in native->files, under native->lock */
	enum native_kind kind;
	struct native_id id;
	int peer;
	u32 minor;
	u32 refs; /* atomic; one is the program's, however many descriptors it has */
	struct native_process *process;
	struct native_render *render;
};

struct native_render {
	struct sim_render render;
	struct native_file *file;
	struct sim_ids handles; /* struct native_bo; under native->lock */
};

struct native_process {
	struct sim_process process;
	u32 refs; /* atomic: the address space, every open file, work to be done */
	u32 task; /* its number in native->processes, or that of its first process */
	/* of a context (sim_process.is_context), under native->lock: */
	struct native_process *next_context; /* ascending */
	u32 number;                          /* among those of its task, lowest free */
};

/* Command buffers of one ring, and the thread that runs them. */
struct native_ring {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct sim_job *first, *last;
	bool started;
};

/* A mapping of /dev/kfd, listed for readers of /proc/PID/maps. */
struct native_kfd_map {
	u64 start, size, offset;
};

/* Another process, whose real /proc lacks facts that the simulator adds. */
struct native_other {
	pid_t pid, own_pid;
	bool traced;
};

struct native {
	struct sim sim;
	char root[PATH_MAX]; /* what the program sees as / of the simulated devices */
	u32 kfd_major;
	pid_t pid;
	pthread_mutex_t lock; /* what follows; nothing of the model is called with it held */
	struct native_bo *by_offset[NATIVE_BUCKETS], *by_id[NATIVE_BUCKETS];
	u64 next_offset[SIM_MAX_GPUS];
	struct native_file *files;
	struct native_render *kfd_clients[SIM_MAX_GPUS]; /* by the device's first partition */
	struct native_process
		*processes[NATIVE_TASKS]; /* this process's, and those of others that it plays */
	struct native_process *contexts;  /* further ones of these processes */
	u32 task;                         /* which of them /dev/kfd is opened for */
	struct native_kfd_map *kfd_maps;
	u32 num_kfd_maps;
	struct native_ring rings[SIM_MAX_GPUS][SIM_DMA_RINGS];
	bool engine_started;
	int resume_socket;
	u32 resuming; /* threads that put queues back; atomic */
	struct sim_wait resumed;
	pid_t own_pid;         /* of this process in a pid name space of its own, or 0 */
	bool in_pid_namespace; /* sysfs has other pids than this process and those that it plays */
	int own_files;         /* CRIU's descriptors begin here, those below are its task's; or 0 */
	struct native_other others[NATIVE_TASKS - 1];
	u32 num_others;
	bool traced, others_traced;
};

/* The machine of this process, set up by the first call; NULL: the setup failed and printed its
 * error. */
struct native *native_get(void);
/* The same, but NULL also before the first call of native_get(). */
struct native *native_peek(void);
/* Before a device is opened: in a child that clone() made, the machine is a new one. */
void native_check_clone(void);
pid_t native_real_pid(void);

static inline struct native_bo *native_bo_of(struct sim_bo *bo)
{
	return (struct native_bo *)((char *)bo - offsetof(struct native_bo, bo));
}

static inline struct native_render *native_render_of(struct sim_render *render)
{
	return (struct native_render *)((char *)render - offsetof(struct native_render, render));
}

static inline struct native_process *native_process_of(struct sim_process *process)
{
	return (struct native_process *)((char *)process -
					 offsetof(struct native_process, process));
}

static inline bool native_id_equal(const struct native_id *a, const struct native_id *b)
{
	return a->inode == b->inode && a->device == b->device;
}

/* native_topology.c: fills in the GPUs of native->sim. -ENOENT: there is no tree; -EINVAL: it is
 * damaged. */
int native_topology_read(struct native *native);

/* native_os.c */
void native_threads_start(void (*function)(void *arg), void *arg, const char *name);
/* Finds a single page of the model as a file, so that it can be mapped elsewhere. Returns its
 * descriptor and the page's offset, or -EINVAL: the model has no such page. */
int native_page_find(const void *page, u64 *ret_offset);
bool native_page_is_file(const struct native_id *id);

/* native_fd.c: descriptors of the library itself, kept away from the program's numbers and not
 * under its limit. */
int native_fd_memory(const char *name, u64 size);
int native_fd_pair(bool cloexec, int *ret_peer);
int native_fd_keep(int fd);              /* a duplicate */
int native_fd_reopen(int fd, int flags); /* an open file of its own, kept as well */
int native_fd_lowest_kept(void);
int native_fd_identify(int fd, struct native_id *ret_id);

/* native_file.c */
int native_open_kfd(struct native *native, int flags);
int native_open_render(struct native *native, u32 minor, int flags);
/* Returns a reference; NULL: the file is not simulated. */
struct native_file *native_file_get(int fd);
struct native_file *native_file_get_by_id(struct native *native, const struct native_id *id);
void native_file_put(struct native_file *file);
/* A file that the parent opened: the child has its descriptor, but may not use it. */
bool native_file_is_inherited(int fd);
const struct native_file *native_file_find_inherited(const struct native_id *id);
void native_files_inherit(struct native *parents);
/* Releases files that no descriptor refers to any more. */
void native_files_reap(struct native *native);

/* native_bo.c */
struct native_bo *native_bo_by_id(struct native *native, const struct native_id *id);
struct native_bo *native_bo_by_offset(struct native *native, const struct sim_gpu *gpu, u64 offset);
void native_bo_enter(struct native *native, struct native_bo *bo);
/* Gives it the mmap offset that another process knows it by. */
void native_bo_move(struct native *native, struct native_bo *bo, u64 offset);
void native_bo_put(struct native_bo *bo);
/* Enters @bo in the list of buffers that show the memory of its origin. After an error, too. */
int native_bo_show(struct sim_bo *bo);
/* Prepares a mapping so that the CPU will see the same bytes as an engine. */
int native_bo_prepare_cpu(struct native_bo *bo, u64 offset, u64 size);
/* Memory of buffers, in pages. */
u64 native_bo_count_pages(struct native *native);
/* The handle by which @render has the buffer: one at most; 0: none. */
u32 native_handle_find(struct native_render *render, struct native_bo *bo);
/* What the handles of the buffer, and buffers of other devices that show its memory, hold of its
 * dma-buf. */
u32 native_bo_count_prime(struct native_bo *bo);
int native_handle_close(struct native_render *render, u32 handle);
void native_handles_close(struct native_render *render);

/* native_dmabuf.c */
int native_prime_to_fd(struct native_render *render, u32 handle, u32 flags, int *ret_fd);
bool native_dmabuf_is_any(int fd);
/* 0: that of the buffer, not one made by an export. */
u64 native_dmabuf_number(int fd);
/* Of this process or of another. @stat: what the real fstat() says of @fd. */
bool native_dmabuf_is_at(int fd, const struct stat *stat);
/* Fills in what stat() says of a dma-buf. */
void native_dmabuf_stat(int fd, struct stat *stat);
/* lseek() of a dma-buf. False if @fd is no dma-buf. */
bool native_dmabuf_seek(int fd, off_t offset, int whence, off_t *ret_at);
/* Opens the link /proc/PID/fd/NUMBER of a dma-buf for stat(); -1: the link leads elsewhere. */
int native_dmabuf_open_link(const char *path);

/* native_holders.c */
/* The program has a new descriptor: it may be a dma-buf. */
void native_holders_note(int fd);
/* The program may have descriptors of dma-bufs that were not noted. */
void native_holders_forget(void);
/* How many references the dma-buf of descriptor @fd has: the number that its fdinfo shows as count,
 * less what the kernel's code for fdinfo holds. false: it is no dma-buf of this machine. */
bool native_holders_count(int fd, u64 *ret_size, u32 *ret_references);
/* Counts the descriptors of the program that are dma-bufs. One that was not noted is a violation,
 * and so is a number of buffers of KFD that is not that of a dma-buf's holders. */
u32 native_holders_count_descriptors(struct native *native);

/* native_drm.c, native_kfd.c: handlers of the ioctls, -errno. */
int native_drm_ioctl(struct native_file *file, unsigned long request, void *argument);
void *native_drm_mmap(struct native_file *file, void *addr, size_t size, int prot, int flags,
		      u64 offset, int *ret_error);
void *native_kfd_mmap(struct native_file *file, void *addr, size_t size, int prot, int flags,
		      u64 offset, int *ret_error);
/* The offset that the program passed to mmap() of /dev/kfd for the mapping at @addr; false: no such
 * mapping is known. */
bool native_kfd_find_map(struct native *native, u64 addr, u64 *ret_offset);
int native_process_open(struct native *native, struct native_process **ret_process);
void native_process_put(struct native_process *process);
/* A reference to the process of a task; NULL: it has none. */
struct native_process *native_process_get(struct native *native, u32 task);
/* Returns a reference to the task's context with the smallest number >= *@number, which becomes
 * that number, or NULL if all numbers are smaller. */
struct native_process *native_context_next(struct native *native, u32 task, u32 *number);
/* Waits for the threads that put queues back. */
void native_process_settle(struct native *native);
/* Acts as if the address space had ended. */
void native_process_exit(struct native *native);

long native_kfd_ioctl(struct native_file *file, u32 request, void *argument);

/* native_resume.c */
void native_resume_init(struct native *native);
void native_resume_serve(struct native *native);
/* -ESRCH: there is no such process, or it has no KFD state. */
int native_resume_elsewhere(struct native *native, pid_t pid);

/* native_control.c */
void native_control_from_environment(struct native *native);

/* native_path.c: returns the file that stands for @path, or @path itself. @buffer has PATH_MAX
 * bytes. */
const char *native_path(const char *path, char *buffer);
/* Fills in the stat() result of a simulated device. */
void native_stat_of_path(const char *path, struct stat *stat);
void native_stat_of_fd(int fd, struct stat *stat);

/* native_procfs.c: the file that stands for @path below /sys/class/kfd/kfd/proc, in @buffer of
 * PATH_MAX bytes; false: the path leads elsewhere. */
bool native_procfs_path(struct native *native, const char *path, char *buffer);

/* The directory of this process for files that are written at a look-up, or NULL. It ends with the
 * process. */
const char *native_procfs_directory(void);

/* native_ras.c: the same for the directory device/ras of a GPU. */
bool native_ras_path(struct native *native, const char *path, char *buffer);

/* native_proc.c: the whole path of a name in an open directory of fdinfo, in @buffer of PATH_MAX
 * bytes; @path: it is another file. */
const char *native_proc_name(int directory, const char *path, char *buffer);
/* native_proc.c: opens a simulated version of @path below /proc for this process. Returns a
 * descriptor, -1 with errno, or -2: the simulator does not change this file. */
int native_proc_open(const char *path);
/* The target that a descriptor's link shows: returns its length; -1: the descriptor is not
 * simulated. */
ssize_t native_proc_readlink(const char *path, char *target, size_t size);

#endif
