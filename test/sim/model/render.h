/* SPDX-License-Identifier: GPL-2.0-only */
/* One open file of a render node: its page tables, contexts and buffer lists, and the driver's
 * ioctls on them. The front end has GEM handles and PRIME. KFD borrows the page tables. */
#ifndef SIM_RENDER_H
#define SIM_RENDER_H

#include "abi_drm.h"
#include "ids.h"
#include "vm.h"

struct sim_render {
	struct sim_gpu *gpu;
	struct sim_vm vm;
	struct sim_lock lock;
	struct sim_ids contexts, bo_lists;
	u32 pasid;
	bool counted;   /* the file of a program */
	bool compute;   /* a KFD process has acquired the page tables */
	bool closing;   /* do not wait for its jobs any more; atomic */
	u32 jobs;       /* not finished yet; atomic */
	u64 fault_addr; /* of the last page fault in the page tables; atomic */
	/* under sim->job_lock: */
	struct sim_job *waiting; /* oldest first */
	u32 running;             /* running jobs */
};

#define SIM_FAILED_JOBS 8

/* All of it is under render->lock. Flags are also read without it. */
struct sim_context {
	u32 references;
	bool guilty;       /* a job of it failed: submissions are refused */
	bool leaving;      /* freed: nothing more runs */
	u32 resets;        /* of the GPU when the context was made */
	u32 memory_errors; /* the cached count at the last query; 0: there was none */
	u32 running;       /* running jobs; under sim->job_lock instead */
	struct {
		u64 last; /* the number of the newest job; the first is 1 */
		u64 done;
		struct {
			u64 sequence;
			int error;
		} failed[SIM_FAILED_JOBS]; /* the newest ones */
		u32 num_failed;
	} ring[SIM_DMA_RINGS];
};

#define SIM_JOB_IBS 49

struct sim_bo_list {
	u32 references; /* under render->lock */
	u32 count;
	struct sim_bo *bos[]; /* ascending */
};

/* A submitted group of command buffers. */
struct sim_job {
	struct sim *sim;
	struct sim_job *next;  /* in render->waiting, or in the list of the thread that drops it */
	struct sim_wait *wait; /* of its GPU, which outlives the file */
	bool dropped;          /* the engine is done with it; under sim->job_lock */
	/* references of the engine, and of the thread that drops it; atomic */
	u32 holders;
	struct sim_render *render;
	struct sim_context *context;
	struct sim_bo_list *list; /* NULL: no buffers */
	u32 ring;
	u64 sequence;
	u64 submitted_ns;
	int result; /* of its packets */
	u32 num_ibs;
	struct {
		u64 addr;
		u32 bytes;
	} ib[SIM_JOB_IBS];
	struct sim_job *next_on_ring; /* for the front end */
};

int sim_render_init(struct sim_render *render, struct sim_gpu *gpu);
/* For KFD's own file, which lives as long as the device. */
void sim_render_init_client(struct sim_render *render, struct sim_gpu *gpu);
/* Call this before anything of the file is freed: drops the waiting jobs, and waits for the running
 * ones. */
void sim_render_closing(struct sim_render *render);
void sim_render_done(struct sim_render *render);
void sim_job_run(struct sim_job *job);
/* Ends a job whose packets sim_job_run() has executed: @error, if the packets had none. */
void sim_job_finish(struct sim_job *job, int error);

/* The front end reports new and closed handles. The first may refuse (-EPERM). */
int sim_render_handle_opened(struct sim_render *render, struct sim_bo *bo);
void sim_render_handle_closed(struct sim_render *render, struct sim_bo *bo);
/* Whether the CPU may map @bo. -EPERM. */
int sim_render_check_cpu_map(const struct sim_bo *bo);

/* The ioctls. X(NAME, number from 0x40, type, function). */
#define SIM_RENDER_IOCTLS(X)                                                    \
	X(GEM_CREATE, 0x00, union drm_amdgpu_gem_create, sim_gem_create)        \
	X(GEM_MMAP, 0x01, union drm_amdgpu_gem_mmap, sim_gem_mmap)              \
	X(CTX, 0x02, union drm_amdgpu_ctx, sim_cs_context)                      \
	X(BO_LIST, 0x03, union drm_amdgpu_bo_list, sim_cs_bo_list)              \
	X(CS, 0x04, union drm_amdgpu_cs, sim_cs_submit)                         \
	X(INFO, 0x05, struct sim_drm_info, sim_info)                            \
	X(GEM_METADATA, 0x06, struct drm_amdgpu_gem_metadata, sim_gem_metadata) \
	X(GEM_VA, 0x08, struct sim_drm_gem_va, sim_gem_va)                      \
	X(WAIT_CS, 0x09, union drm_amdgpu_wait_cs, sim_cs_wait)                 \
	X(GEM_OP, 0x10, struct sim_drm_gem_op, sim_gem_op)                      \
	X(GEM_USERPTR, 0x11, struct drm_amdgpu_gem_userptr, sim_gem_userptr)    \
	X(GEM_LIST_HANDLES, 0x19, struct sim_drm_gem_list_handles, sim_gem_list_handles)

#define SIM_RENDER_DECLARE(name, number, type, function) \
	int function(struct sim_render *render, type *args);
SIM_RENDER_IOCTLS(SIM_RENDER_DECLARE)
#undef SIM_RENDER_DECLARE

/* Waits until the file has no unfinished job. */
void sim_cs_wait_idle(struct sim_render *render);

#define SIM_VA_BOTTOM       0x10000ull
#define SIM_VA_TOP_RESERVED ((4ull << 20) + 8192)
#define SIM_VM_BYTES        (1ull << 48)

#endif
