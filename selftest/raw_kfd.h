/* SPDX-License-Identifier: GPL-2.0-only */
/* A client of KFD by plain ioctls. Every function returns 0 or -errno. */
#ifndef SELFTEST_RAW_KFD_H
#define SELFTEST_RAW_KFD_H

#include <stddef.h>
#include <stdint.h>

#include <linux/kfd_ioctl.h>

#define RAW_GPUS     64
#define RAW_ENOTSUPP 524 /* the kernel's own, that <errno.h> does not have */

#define RAW_VRAM    (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC | RAW_RWX)
#define RAW_GTT     (KFD_IOC_ALLOC_MEM_FLAGS_GTT | RAW_RWX)
#define RAW_USERPTR (KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | RAW_RWX)
#define RAW_RWX \
	(RAW_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE)
/* KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, which the kernel's header shifts out of an int. */
#define RAW_WRITABLE       (1u << 31)
#define RAW_DOORBELL_BYTES 8192

struct raw_gpu {
	uint32_t gpu_id; /* the real one, as sysfs has it */
	int render_minor;
	int node;
	uint32_t gfx_target_version;
	uint32_t location_id;
};

/* This process's KFD. */
struct raw_process {
	int kfd;
	int gpus; /* that it sees */
	struct raw_gpu gpu[RAW_GPUS];
	int render[RAW_GPUS]; /* acquired, or -1 */
};

struct raw_bo {
	uint64_t handle;
	uint64_t mmap_offset;
	char *address; /* of CPU and GPU */
	size_t size;
};

struct raw_queue {
	struct raw_bo ring;
	struct raw_bo pointers;
	uint64_t doorbell_offset;
	uint32_t id;
	char *slice; /* the mapped page of doorbells */
	volatile uint64_t *read, *write, *doorbell;
	uint64_t written;
};

int raw_ioctl(int fd, unsigned long request, void *argument);

/* The numbers with these names in a file of the topology. Others are left as they are. */
int raw_read_properties(const char *path, const char *const *names, int count, uint32_t *numbers);
/* The GPUs in sysfs that can be read; *ret_hidden counts nodes that give EPERM (may be NULL). */
int raw_list_gpus(struct raw_gpu *gpus, int *ret_count, int *ret_hidden);
int raw_open_render(const struct raw_gpu *gpu, int *ret_fd);

/* Opens /dev/kfd only. */
int raw_open(struct raw_process *process);
/* Opens a render node of each GPU and acquires its VM. */
int raw_acquire_all(struct raw_process *process);
/* raw_open() and raw_acquire_all(). */
int raw_open_acquired(struct raw_process *process);
int raw_acquire(struct raw_process *process, uint32_t gpu_id, int render_fd);

/* ALLOC of bo->size bytes at bo->address, which for user memory is that memory. */
int raw_alloc_at(struct raw_process *process, uint32_t gpu_id, uint32_t flags, struct raw_bo *bo);
/* ALLOC at an address of its own. @user: for user memory, else NULL. */
int raw_alloc(struct raw_process *process, uint32_t gpu_id, uint32_t flags, size_t size, void *user,
	      struct raw_bo *ret_bo);
int raw_free(struct raw_process *process, const struct raw_bo *bo);
int raw_map(struct raw_process *process, const struct raw_bo *bo, uint32_t gpu_id);
int raw_unmap(struct raw_process *process, const struct raw_bo *bo, uint32_t gpu_id);
/* Maps the buffer for the CPU at its address, through this file. */
int raw_mmap(int fd, const struct raw_bo *bo);
/* All of that for the GPU at this position: VRAM or GTT that both sides can use. */
int raw_alloc_mapped(struct raw_process *process, int gpu, uint32_t flags, size_t size,
		     struct raw_bo *ret_bo);

/* A dma-buf of the buffer, as ROCr asks for one. */
int raw_export(struct raw_process *process, const struct raw_bo *bo, int *ret_fd);
/* The buffer of a dma-buf, at @address. */
int raw_import(struct raw_process *process, uint32_t gpu_id, int fd, void *address,
	       struct raw_bo *ret_bo);

/* The share handle of the buffer (AMD's out-of-tree driver), and the buffer of one, at bo->address.
 */
#define RAW_IPC_FLAGS 0x5au
int raw_ipc_export(struct raw_process *process, const struct raw_bo *bo, uint32_t *ret_handle);
int raw_ipc_import(struct raw_process *process, uint32_t gpu_id, const uint32_t *handle,
		   struct raw_bo *bo);

/* The SVM ioctl, with @count (up to 8) attributes, which come back. */
int raw_svm(struct raw_process *process, void *start, uint64_t size, uint32_t op,
	    struct kfd_ioctl_svm_attribute *attrs, uint32_t count);

int raw_create_queue(struct raw_process *process, int gpu, struct raw_queue *queue);
int raw_map_doorbell(struct raw_process *process, uint64_t offset, struct raw_queue *queue);
/* Packets of a user queue, with their submission. */
void raw_queue_add(struct raw_queue *queue, volatile uint64_t *at, uint64_t value);
void raw_queue_copy(struct raw_queue *queue, const void *from, void *to, uint32_t bytes);
void raw_queue_ring(struct raw_queue *queue);
/* Waits until the read pointer has arrived; -ETIME after some time. */
int raw_queue_wait(struct raw_queue *queue);
/* 0 when the read pointer does not move for a while, -EBUSY when it does. */
int raw_queue_rests(struct raw_queue *queue);

#endif
