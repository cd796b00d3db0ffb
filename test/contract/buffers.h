/* SPDX-License-Identifier: GPL-2.0-only */
/* Buffers of KFD that a rule shares. What a process does with its own dma-buf holds for one of
 * another process, too. Every function ends the process when a call fails. */
#ifndef CONTRACT_BUFFERS_H
#define CONTRACT_BUFFERS_H

#include <sys/types.h>

#include "raw_kfd.h"

#define SIZE 65536u

struct raw_bo buffer_new(struct raw_process *process, int gpu, uint32_t flags);
/* Maps it for its GPU and for the CPU. */
struct raw_bo buffer_new_mapped(struct raw_process *process, int gpu, uint32_t flags);
void buffer_free(struct raw_process *process, const struct raw_bo *bo);

/* A dma-buf of the buffer. Kernels without EXPORT_DMABUF give one at a CHECKPOINT. */
int buffer_export(struct raw_process *process, const struct raw_bo *bo);
/* The buffer of a dma-buf, at an address of its own. */
struct raw_bo buffer_import(struct raw_process *process, int gpu, int fd);

/* The record that CHECKPOINT returns for the buffer, or its error. The caller owns the dma-buf. */
int buffer_try_save(struct raw_process *process, const struct raw_bo *bo,
		    struct kfd_criu_bo_bucket *ret_bucket);
struct kfd_criu_bo_bucket buffer_save(struct raw_process *process, const struct raw_bo *bo);

/* The handle of a dma-buf in a render file, and of the buffer's. */
uint32_t buffer_name(int render, int fd);
uint32_t buffer_name_bo(struct raw_process *process, int gpu, const struct raw_bo *bo);

ino_t inode(int fd);

/* The number of partitions of the first GPU's device, which come first. */
int count_partitions(void);
/* The position of the first GPU on another device. Skips the rule if all GPUs are on one device. */
int other_device(void);

#endif
