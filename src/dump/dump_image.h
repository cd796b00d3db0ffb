/* SPDX-License-Identifier: GPL-2.0-only */
/* One KFD process while it is being dumped, and its images. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_IMAGE_H
#define AMDGPU_PLUGIN_DUMP_DUMP_IMAGE_H

#include "content/content.h"
#include "dump/dump.h"
#include "kernel/kfd.h"
#include "preflight/gem_list.h"

/* Begins all zero but for the session. */
struct process_dump {
	struct dump_session *session;
	struct dumped_process *process;
	/* The counts, and from CHECKPOINT on the arrays. */
	struct kfd_state state;
	const struct topology *topology;
	/* The mappings that the process has of devices. */
	struct proc_mapping *mappings;
	size_t num_mappings;
	struct gem_saved_list gem;
	struct kfd_jobs jobs;
};

/* The functions below log on error. */

/* The render minor, on this machine, of the GPU that the process knows as @user_gpu_id. */
int dump_image_find_minor(const struct process_dump *dump, uint32_t user_gpu_id,
			  uint32_t *ret_minor);
/* Lists the contents in dump->jobs, and creates a file for each GPU. -ENOSPC: they have less room
 * than that and the @missing_room of other processes. */
int dump_image_begin_contents(struct process_dump *dump, uint64_t missing_room);
/* The contents have been saved: looks whether the GPUs were reset, and writes the state image, which
 * names all other images of the process. */
int dump_image_finish(struct process_dump *dump);
/* Writes the image of a /dev/kfd without state, which a restore merely opens; @reason is for the
 * log. */
int dump_image_write_plain(int id, const char *reason);

/* Logs nothing. */
void dump_image_done(struct process_dump *dump);

#endif
