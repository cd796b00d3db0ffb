/* SPDX-License-Identifier: GPL-2.0-only */
/* The BOs of a KFD process as work for the content unit: which of them have contents, and in which
 * order these lie in the image of their GPU. The same for dump and restore. */
#ifndef AMDGPU_PLUGIN_CONTENT_KFD_JOBS_H
#define AMDGPU_PLUGIN_CONTENT_KFD_JOBS_H

#include "content/content.h"
#include "kernel/kfd.h"

struct kfd_jobs {
	/* One a device of the state, in its order. The caller sets render_minor and image_fd, which
	 * is -1 at first and closed with the rest. */
	struct content_job *jobs;
	uint32_t num_jobs;
	/* One a BO of the state, in its order: where its contents are work; NULL: it has none. */
	struct content_bo **by_index;
};

/* -ENOMEM. Borrows the dma-buf descriptors of @state. */
int kfd_jobs_init(const struct kfd_state *state, struct kfd_jobs *ret_work);
void kfd_jobs_done(struct kfd_jobs *work);

#endif
