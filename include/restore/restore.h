/* SPDX-License-Identifier: GPL-2.0-only */
/* Restores the KFD state of a process: the restored task rebuilds it. CRIU's main process then
 * starts its queues (resume.h). amdgpu_plugin_drm.h has the restore of render nodes. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_H

#include <stdint.h>

#include "criu-amdgpu.pb-c.h"

struct restore_session;
struct state_image;

/* In CRIU's main process, before CRIU forks the tasks. Logs on error. */
int restore_init(struct restore_session *session);
void restore_done(struct restore_session *session);

/* Reads the state image of file @id, for restore_kfd() or drm_restore(). If the task has read the
 * image before and kept it, the result is IMAGE_KFD without a message. Logs on error, unless CRIU's
 * main process has done so for this image. */
int restore_read_image(const struct restore_session *session, int id,
		       struct state_image *ret_image);
/* Restores the /dev/kfd file of image @id, and takes over @kfd. With NULL, the task has kept the
 * image. Returns a descriptor, which is the caller's. Logs on error; then the task must not run.
 */
int restore_kfd(struct restore_session *session, int id, CriuKfd *kfd);

/* Answers UPDATE_VMA_MAP in the calling task; see mappings_update(). After an error other than
 * -ENOTSUP, resume_task() kills all tasks. */
int restore_update_mapping(struct restore_session *session, const char *path, uint64_t addr,
			   uint64_t old_offset, uint64_t *ret_new_offset, int *ret_fd);

#endif
