/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of command submission share: references to contexts and buffer lists, and the end
 * of a job. render.h declares the ioctls. */
#ifndef SIM_CS_H
#define SIM_CS_H

#include "render.h"

/* A client's list of buffers. */
struct sim_bo_list_in {
	u32 operation, list_handle, bo_number, bo_info_size;
	u64 bo_info_ptr;
};

/* Both: with a reference, or NULL. put accepts NULL for lists. */
struct sim_context *sim_context_get(struct sim_render *render, u32 id);
void sim_context_put(struct sim_render *render, struct sim_context *context);
struct sim_bo_list *sim_bo_list_get(struct sim_render *render, u32 id);
void sim_bo_list_put(struct sim_render *render, struct sim_bo_list *list);
/* -EINVAL sizes, -EFAULT, -ENOENT a handle is unknown, -EPERM memory of another address space. */
int sim_bo_list_new(struct sim_render *render, const struct sim_bo_list_in *in,
		    struct sim_bo_list **ret_list);
/* Releases all contexts and lists that still have a number. */
void sim_cs_objects_release(struct sim_render *render);

/* Releases what a job holds, but not the job. */
void sim_job_release(struct sim_job *job);
/* Appends a job to the waiting jobs. */
void sim_job_enter(struct sim_job *job);
/* Drops the waiting jobs of a context, or with NULL of the whole file: they end with -ECANCELED and
 * never run. Returns after the running jobs have ended. */
void sim_jobs_drop(struct sim_render *render, struct sim_context *context);

#endif
