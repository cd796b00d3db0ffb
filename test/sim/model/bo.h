/* SPDX-License-Identifier: GPL-2.0-only */
/* A buffer object: sparse memory of its own, pages of a user's address space, or the memory of
 * another GPU's buffer. The front end has its handles, its mmap() and its reference counts; vm.h
 * has its addresses. */
#ifndef SIM_BO_H
#define SIM_BO_H

#include "sim.h"

enum sim_bo_kind {
	SIM_BO_IO,      /* doorbells, registers: no content the engines could touch */
	SIM_BO_MEMORY,  /* VRAM or GTT */
	SIM_BO_USERPTR, /* a range of an address space */
};

/* What a program has noted at a buffer. */
struct sim_bo_metadata {
	u32 bytes;
	u32 data[64];
};

struct sim_bo {
	struct sim_gpu *gpu;
	enum sim_bo_kind kind;
	u64 size; /* bytes, whole pages */
	u64 alignment;
	u32 domains;   /* AMDGPU_GEM_DOMAIN_* preferred */
	u64 flags;     /* AMDGPU_GEM_CREATE_* */
	u32 kfd_flags; /* KFD_MEM_* with which KFD has made it, or 0 */

	struct sim_bo *origin; /* SIM_BO_MEMORY of another GPU, or NULL */
	/* under lock; NULL: no metadata */
	u64 tiling, metadata_flags;
	struct sim_bo_metadata *metadata;
	bool charged, charged_vram, charged_limited;
	u32 gem_mappings;      /* mappings entered by GEM_VA, in all page tables */
	struct sim_bo_va *vas; /* the page tables that may map it: bo_va.c */
	struct sim_lock lock;  /* creation of pages, vas */
	void *background;      /* what an untouched page contains */

	u64 user_addr;
	bool user_readonly;
};

/* The front end calls these right after it has allocated a buffer and right before it releases it.
 */
void sim_bo_init(struct sim_bo *bo, struct sim_gpu *gpu, u64 size_bytes);
void sim_bo_done(struct sim_bo *bo);

/* Sets the kind of the buffer. Called once, before other code sees the buffer. */
struct sim_bo_memory {
	u32 domains;
	u64 flags;
	bool limited;  /* charge GTT against the limit of KFD */
	bool poisoned; /* reads as poison until written */
};
int sim_bo_set_memory(struct sim_bo *bo, const struct sim_bo_memory *memory);
int sim_bo_set_user(struct sim_bo *bo, u64 addr, bool readonly, bool limited);
void sim_bo_set_origin(struct sim_bo *bo, struct sim_bo *origin);
/* Whether KFD, and a file with a VM of KFD, refuse the import @bo. amdgpu_dma_buf.c (7.2): both
 * validate an import, and amdgpu_dma_buf_map() does not map VRAM that the GPU reaches by XGMI. */
bool sim_bo_is_refused_in_hive(const struct sim_bo *bo);

/* A CPU mapping of the buffer is used for the first time. */
void sim_bo_touch(struct sim_bo *bo);

/* The buffer whose memory @bo shows: itself, or that of another GPU. */
struct sim_bo *sim_bo_storage(struct sim_bo *bo);

/* The bytes, which the front end has. */

/* Called once the background of a buffer with memory of its own is set. After -ENOMEM there is
 * nothing to undo. */
int sim_bo_data_init(struct sim_bo *bo);
void sim_bo_data_done(struct sim_bo *bo);

/* The page with that number for a CPU mapping; NULL: no memory, or not a buffer with pages. */
void *sim_bo_page(struct sim_bo *bo, u64 index);

/* Copy bytes within the buffer. -EFAULT: user pages are unmapped or read-only; -ESRCH: their
 * address space has ended; -ENOMEM. */
int sim_bo_read(struct sim_bo *bo, u64 offset, void *data, u64 size);
int sim_bo_write(struct sim_bo *bo, u64 offset, const void *data, u64 size);
int sim_bo_copy(struct sim_bo *dst, u64 dst_offset, struct sim_bo *src, u64 src_offset, u64 size);
/* Puts @desired where *@expected is, atomically also against CPUs: 4 or 8 bytes, aligned.
 * *@expected becomes what was there. */
int sim_bo_exchange(struct sim_bo *bo, u64 offset, u32 bytes, u64 *expected, u64 desired);

#endif
