/* SPDX-License-Identifier: GPL-2.0-only */
/* The BOs of a KFD process as jobs of content.h, in the order of the image format. */
#ifndef AMDGPU_PLUGIN_CONTENT_KFD_JOBS_H
#define AMDGPU_PLUGIN_CONTENT_KFD_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "content/content.h"
#include "criu-amdgpu.pb-c.h"

struct kfd_state;

struct kfd_jobs {
	/* One per device of the state, in its order. The caller sets render_minor, streamed and
	 * image_fd. image_fd is -1 at first, and kfd_jobs_done() closes it. */
	struct content_job *jobs;
	uint32_t num_jobs;
	/* One per BO of the state, in its order, or NULL if the BO has no contents. */
	struct content_bo **by_index;
};

/* -ENOMEM. Borrows the dma-buf descriptors of @state. @without: leaves out the contents of the BOs
 * whose element is true; with NULL of none. */
int kfd_jobs_init(const struct kfd_state *state, const bool *without, struct kfd_jobs *ret_jobs);
/* The same for the BOs whose contents the image @kfd has; @state has the BOs of @kfd. The contents
 * of an import are in the image of its owner. */
int kfd_jobs_init_saved(const struct kfd_state *state, const CriuKfd *kfd,
			struct kfd_jobs *ret_jobs);
/* Sets the expected checksums, if the image has them. @kfd is the valid image @id, from which the
 * state came. -EBADMSG: the checksum of a GPU's checksums differs. Logs on error. */
int kfd_jobs_set_checksums(struct kfd_jobs *jobs, int id, const CriuKfd *kfd);
void kfd_jobs_done(struct kfd_jobs *jobs);

#endif
