/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU_OP for the acceptance tests. Every function gives 0 or -errno. */
#ifndef CONTRACT_CRIU_OP_H
#define CONTRACT_CRIU_OP_H

#include <stdint.h>

#include "raw_kfd.h"

#define CRIU_BOS        64
#define CRIU_PRIV_BYTES (256 << 10)

/* What a dump knows of a process. */
struct criu_image {
	struct kfd_ioctl_criu_args args; /* counts as PROCESS_INFO gave them */
	struct kfd_criu_device_bucket devices[RAW_GPUS];
	struct kfd_criu_bo_bucket bos[CRIU_BOS];
	unsigned char priv[CRIU_PRIV_BYTES];
};

/* In memory that forked processes share. */
struct criu_image *criu_image_new(void);

int criu_process_info(int kfd, struct criu_image *image);
/* With the counts of the image. A test may change the arguments, which have their pointers, before
 * the call. */
int criu_checkpoint(int kfd, struct criu_image *image);
struct kfd_ioctl_criu_args criu_checkpoint_args(struct criu_image *image);
int criu_unpause(int kfd);
/* Closes the dma-bufs that CHECKPOINT or RESTORE gave. */
void criu_close_dmabufs(struct criu_image *image);

/* With the render files of @process as drm_fd, by actual_gpu_id; it must
 * have opened /dev/kfd only. */
int criu_restore(struct raw_process *process, struct criu_image *image);
int criu_resume(int kfd, uint32_t pid);

/* Position of the bucket of that handle's kind: the first whose flags have all of
 * these bits, or -1. */
int criu_find_bo(const struct criu_image *image, uint32_t flags);

#endif
