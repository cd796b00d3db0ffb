/* SPDX-License-Identifier: GPL-2.0-only */
/* The shared BOs of a task. RESTORE can make BOs only, so those that the task has imported are left
 * out of it. The task then imports them from the tasks that make them (restore_shared.h), before it
 * loads contents. A BO gets the handle that it had: KFD takes the lowest number that is free, so
 * the task imports in the order of handles, and takes the numbers between with fillers. */
#ifndef AMDGPU_PLUGIN_SHARING_IMPORTS_H
#define AMDGPU_PLUGIN_SHARING_IMPORTS_H

#include "session/restore_session.h"

struct object;

/* Takes the imports out of the image in task->kfd: the list of BOs and the private data are then
 * those for RESTORE. The image is valid. Logs on error. */
int imports_take(struct restored_task *task);
/* Whether it takes @bo out: RESTORE imports those with a share handle itself. */
bool imports_take_out(const KfdBoEntry *bo);
void imports_done(struct restored_task *task);

/* An object of another task. */
struct awaited_object {
	uint32_t number;
	/* Size of the object in bytes, and the GPU that imports it, as the task knows it.
	 * imports_fetch() uses them. */
	uint64_t size;
	uint32_t gpu_id;
	/* The task that makes the object. */
	pid_t owner;
	/* Begins log lines. */
	char name[64];
};

/* Waits until the object is published. Logs on error: the owner has failed, or has no image, or its
 * image lacks the object. */
int imports_await(const struct restore_session *session, const struct awaited_object *awaited,
		  struct object *ret_object);

/* Waits in the same way, and compares the object with what the image says: its size, and whether
 * its GPU is as close to that of the import as at the dump. *@ret_fd: its dma-buf, which the caller
 * owns. Logs on error. */
int imports_fetch(const struct restore_session *session, const struct awaited_object *awaited,
		  struct object *ret_object, int *ret_fd);

/* After RESTORE of @state by the /dev/kfd @fd: publishes the task's objects, waits for those of
 * others, and imports them. Notes the mappings of imports. Logs on error. */
int imports_restore(struct restore_session *session, int fd, const struct kfd_state *state);

#endif
