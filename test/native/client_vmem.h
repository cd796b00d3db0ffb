/* SPDX-License-Identifier: GPL-2.0-only */
/* Buffers with GEM handles, made as ROCr makes them. Virtual memory API: KFD allocates VRAM without
 * an address, the render file of the compute VM imports its dma-buf, and GEM_VA maps it. IPC: the
 * file imports VRAM that KFD has mapped. */
#ifndef TEST_NATIVE_CLIENT_VMEM_H
#define TEST_NATIVE_CLIENT_VMEM_H

#include "raw_kfd.h"
#include "workload.h"

/* Leaves a hole below the first handle of each GPU. With several GPUs, the next one imports and
 * maps the buffer, too. *@ret_bo has the address of the first mapping. */
int client_vmem_make(struct raw_process *process, const struct workload *workload, size_t index,
		     uint64_t address, struct raw_bo *ret_bo);
/* Imports and maps the buffer of another process in the same way, without a buffer of KFD.
 * *@ret_offset: where the CPU can map it through the render file. */
int client_vmem_import(const struct raw_process *process, const struct workload_bo *bo, int dmabuf,
		       uint64_t address, uint64_t *ret_offset);
/* Gives a buffer that KFD has mapped at @raw's address a GEM handle, and maps its second half by
 * that handle, too. */
int client_vmem_map_again(struct raw_process *process, const struct workload_bo *bo,
			  const struct raw_bo *raw);
/* Gives buffer @index of task @workload, which KFD has mapped, a GEM handle in @render, and notes
 * metadata at it. Importers do it, too: ROCr only reads what the owner has noted, but here each
 * process has a simulator of its own. Leaves a hole below the first handle. */
int client_vmem_mark(int render, const struct workload *workload, size_t index, int dmabuf);
/* The same in the process that has made the buffer, as @raw. */
int client_vmem_mark_own(struct raw_process *process, const struct workload *workload, size_t index,
			 const struct raw_bo *raw);
/* Checks every byte through each GPU address, on each GPU, and as the CPU sees it. */
int client_vmem_verify(const struct workload *workload, size_t index, uint64_t address);

#endif
