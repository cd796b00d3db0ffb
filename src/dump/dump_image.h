/* SPDX-License-Identifier: GPL-2.0-only */
/* The images of a KFD process. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_IMAGE_H
#define AMDGPU_PLUGIN_DUMP_DUMP_IMAGE_H

#include "criu-amdgpu.pb-c.h"
#include "session/dump_session.h"

/* The functions below log on error. */

/* The render minor, on this machine, of the GPU that the process knows as @user_gpu_id. */
int dump_image_find_minor(const struct dumped_process *process, uint32_t user_gpu_id,
			  uint32_t *ret_minor);
/* Lists the contents in process->jobs, and creates a file for each GPU. -ENOSPC: they have less
 * room than that and the @missing_room of other processes. */
int dump_image_begin_contents(struct dumped_process *process, uint64_t missing_room);
/* The contents have been saved: looks whether the GPUs were reset, and writes the state image,
 * which names all other images of the process. */
int dump_image_finish(struct dumped_process *process);
/* An image of a dma-buf with the processes of the dump that have an image. The caller frees it.
 * NULL without a line: no memory. */
CriuDmabufNode *dump_image_new_with_owners(const struct dump_session *session);
/* Writes the image of a /dev/kfd without state, which a restore merely opens; @reason is for the
 * log. */
int dump_image_write_plain(int id, const char *reason);
/* A dump has failed: removes the state images. Logs nothing. */
void dump_image_remove_all(const struct dump_session *session);

#endif
