/* SPDX-License-Identifier: GPL-2.0-only */
/* The KFD driver: its five CRIU operations, and what is a KFD file at all. Silent but for the lines
 * that only it can word. */
#ifndef AMDGPU_PLUGIN_KERNEL_KFD_H
#define AMDGPU_PLUGIN_KERNEL_KFD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "kernel/kfd_criu.h"

#define KFD_PATH "/dev/kfd"

/* Whether @stat is that of /dev/kfd: 1, 0, or -errno after a line. The major is dynamic: sysfs
 * tells it, and it is what counts also where /dev has no such file. */
int kfd_is_file(const struct stat *stat);
/* Whether @fd is a dma-buf of an AMD GPU; false where there is no /dev/kfd to ask. */
bool kfd_is_dmabuf(int fd);

/* A descriptor of our own. -errno after a line; -EOPNOTSUPP: too old for checkpoints
 * of GTT BOs (1.8). */
int kfd_open(int *ret_fd);
/* Whether checkpoints are possible at all: the errors of kfd_open(). */
int kfd_check_version(void);

/* Everything that CHECKPOINT tells of a process, and RESTORE wants. Arrays are never NULL, as the
 * kernel demands even of empty ones. */
struct kfd_state {
	pid_t vpid;
	struct kfd_device_bucket *devices;
	uint32_t num_devices;
	struct kfd_bo_bucket *bos;
	uint32_t num_bos;
	uint8_t *priv_data;
	uint64_t priv_data_size;
	uint32_t num_objects;
	/* The limit of descriptors before it was raised for those of dma-bufs. */
	struct rlimit old_limit;
	bool limit_raised;
};

/* Makes the arrays for the counts in @state; all dma-buf descriptors invalid. */
int kfd_state_alloc(struct kfd_state *state);
/* Frees all, closes the dma-buf descriptors and puts the limit of descriptors back. */
void kfd_state_done(struct kfd_state *state);

/* Stops the queues and fills the counts and vpid. Counts up: one call a process. Must be called
 * by the tracing thread, as must the next two. */
int kfd_pause(int fd, struct kfd_state *ret_counts);
/* Fills the arrays. The descriptors of dma-bufs are close-on-exec, and numbered from @lowest_fd
 * where the system has room there; while they are open, so many more descriptors are allowed.
 * -EINVAL: not paused, or the counts are not the current ones. */
int kfd_checkpoint(int fd, struct kfd_state *state, int lowest_fd);
/* Starts the queues. -EINVAL: is not paused. */
int kfd_unpause(int fd);

/* Rebuilds @state in the calling process; fills restored_offset and the dma-buf descriptors of BOs,
 * numbered as above. Cannot be repeated nor undone: after a failure the process must end. */
int kfd_restore(int fd, struct kfd_state *state, int lowest_fd);
/* Starts the queues of process @pid. Once, also after an error, and only after kfd_restore().
 * -errno after a line; -ESRCH: no KFD process. */
int kfd_resume(pid_t pid);

/* What the driver means by @error (-errno) of @op; NULL: no more than the error's own words. */
const char *kfd_explain(enum kfd_criu_op op, int error);

#endif
