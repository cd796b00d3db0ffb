/* SPDX-License-Identifier: GPL-2.0-only */
/* The restore of a process's KFD state, in the restored task, and its resumption
 * by CRIU's main process. */
#ifndef AMDGPU_PLUGIN_RESTORE_RESTORE_H
#define AMDGPU_PLUGIN_RESTORE_RESTORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "amdgpu_plugin_topology.h"
#include "criu-amdgpu.pb-c.h"
#include "criu/options.h"
#include "map/map.h"

struct gpu_file;
struct handoff;
struct mappings;
struct restore_guard;
struct restore_shared;

/* The open files of the task's GPUs, see restore/gpu_files.h. Begins all zero. */
struct gpu_files {
	struct gpu_file *files;
	size_t count;
};

/* The task that runs the restore hooks; each task of a restored tree has its own copy. */
struct restored_task {
	pid_t vpid;
	/* The image of its KFD state; NULL: it has none. */
	CriuKfd *kfd;
	int kfd_id;
	/* All image files have been searched for it. */
	bool has_none;
	struct topology saved;
	struct topology local;
	struct gpu_map map;
	bool prepared;
	/* RESTORE has been called. */
	bool rebuilt;
	struct mappings *mappings;
	struct gpu_files files;
};

/* All zero but for the options: there is nothing to restore. */
struct restore_session {
	const struct options *options;
	/* CRIU's inventory says that the images need the plugin. */
	bool needed;
	struct restored_task task;
	/* NULL: the tasks load their contents themselves. */
	struct handoff *handoff;
	struct restore_shared *shared;
	/* NULL: there is nothing to restore. */
	struct restore_guard *guard;
};

/* Makes what the tasks and CRIU's main process share; before any task exists. */
int restore_init(struct restore_session *session);
void restore_done(struct restore_session *session);

/* Reads the image and the topologies of the calling task and maps its GPUs, once, for whoever asks
 * first, so that the order of descriptors does not matter: here @render, an image of the task,
 * which may say where the task's state is. -ENOENT: the task has no KFD state. */
int restore_prepare(struct restore_session *session, const CriuRenderNode *render);
/* What @render says of the calling task, or NULL. */
const KfdOwner *restore_find_owner(const struct restored_task *task, const CriuRenderNode *render);

/* The image @id of a /dev/kfd file, for restore_kfd(). -ENOENT: there is none. */
int restore_read_kfd(struct restore_session *session, int id, CriuKfd **ret_kfd);
/* Rebuilds the file of that image, which it takes over; the descriptor returned is the caller's.
 * After an error the task must not run. */
int restore_kfd(struct restore_session *session, int id, CriuKfd *image);

/* The file through which the BOs of GPU @saved are restored and mapped: a descriptor of it, or of
 * another open of the same node. Both are the caller's. -errno without a line. */
int gpu_files_share(struct restored_task *task, const struct topology_node *saved, int *ret_fd);
int gpu_files_open_other(const struct restored_task *task, const struct topology_node *saved,
			 int *ret_fd);

/* In CRIU's main process, when all tasks have been forked: from here on a thread of it loads their
 * contents. Where no thread can be started, each task loads its own, after a warning. */
void restore_listen(struct restore_session *session);

/* Answers UPDATE_VMA_MAP in the calling task; see mappings_update(). After an error other than
 * -ENOTSUP the task will not be resumed. */
int restore_update_mapping(struct restore_session *session, const char *path, uint64_t addr,
			   uint64_t old_offset, uint64_t *ret_new_offset, int *ret_fd);

/* Makes sure that the calling task will not run: restore_resume() will find it incomplete. */
void restore_mark_failed(struct restore_session *session);

/* In CRIU's main process: starts the queues of task @pid. -ENOTSUP: it has none of our making.
 * After an error the task has been killed, since some hosts ignore what this hook returns. */
int restore_resume(struct restore_session *session, int pid);

/* In CRIU's main process, at the end of a restore that CRIU calls a success: kills the tasks if one
 * of them was not resumed, because another plugin answered for all. Logs on error. */
void restore_finish(struct restore_session *session);

#endif
