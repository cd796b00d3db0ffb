/* SPDX-License-Identifier: GPL-2.0-only */
/* The dump of KFD state: what outlives a hook, and one function a step. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_H
#define AMDGPU_PLUGIN_DUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "content/kfd_jobs.h"
#include "criu/guard.h"
#include "criu/options.h"
#include "kernel/kfd.h"
#include "kernel/memory_errors.h"

#define DUMP_NO_ID (-1)

struct background;
struct keep;
struct bo_index;
struct dumped_dmabuf;
struct dumped_render;
struct gem_files;
struct gem_saved_list;
struct proc_mapping;
struct shared_bos;

/* An open /dev/kfd of the dump. */
struct dumped_file {
	/* The plugin's descriptor of the file. */
	int fd;
	/* A task that has the file, by its pid here. */
	pid_t pid;
	/* The lowest vpid of the tasks that have it: CRIU opens the file again in that task. */
	pid_t reopen_vpid;
	/* The vpid of the process that owns it, or 0 if the plugin has not asked, because each task
	 * has one file only. */
	pid_t owner_vpid;
	/* Index of the process that owns the file, or DUMP_NO_PROCESS if it could not be paused. */
	size_t process;
	/* Then: -ENODEV if the process sees no GPU, -EBADF if it is not part of the dump. */
	int refusal;
};

#define DUMP_NO_PROCESS SIZE_MAX
#define DUMP_NO_FILE    (-1)

/* What the kernel has said of queues, see src/preflight/queue_probe.h. */
struct queue_answers {
	struct queue_answer *list;
	size_t count;
};

/* A KFD process of the dump: one for each process, however many files of /dev/kfd it has. */
struct dumped_process {
	struct dump_session *session;
	/* The file whose image holds the state, or DUMP_NO_ID if CRIU has not shown one yet. */
	int id;
	/* For the log: "kfd ID", or "process PID" before there is an id. */
	char name[32];
	/* The descriptor of one of its files in dump_session.files, borrowed. */
	int fd;
	bool paused;
	/* Its pid here. */
	pid_t pid;
	/* Its pid as the process sees itself. */
	pid_t vpid;
	/* The time of its core image when it was paused, or all zero if there was none. */
	struct timespec core_time;
	/* The vpid of the process in which CRIU is going to open the file again. */
	pid_t reopen_vpid;
	/* The counts of PROCESS_INFO, and from CHECKPOINT on the arrays and the dma-bufs. */
	struct kfd_state state;
	/* Of the processes of the session, the first one whose dma-bufs were open when this one
	 * got its own. */
	size_t first_open;
	/* Finds the BO of a mapping. */
	struct bo_index *bo_index;
	/* The mappings of devices. */
	struct proc_mapping *mappings;
	size_t num_mappings;
	/* The number of these for which a restoring CRIU calls UPDATE_VMA_MAP. */
	uint32_t num_updates;
	/* Its render files, with their GEM handles. */
	struct gem_files *gem_files;
	/* The GEM handles for its image. */
	struct gem_saved_list *gem;
	/* The contents that are being saved. */
	struct kfd_jobs jobs;
	/* The GPUs that the process sees. */
	struct dumped_gpu {
		uint32_t render_minor;
		uint32_t user_gpu_id;
		/* A BO of the GPU has this mmap offset. Only the process's compute file maps it. */
		bool has_bo;
		uint64_t bo_offset;
		/* The descriptor of the compute file in the process, or DUMP_NO_FILE if the plugin
		 * cannot determine which file it is. */
		int compute_file;
		/* The GEM handles of that file, which the process's image has. */
		size_t num_handles;
	} * gpus;
	size_t num_gpus;
};

/* A context of the plugin on a GPU of this machine. */
struct dumped_watch {
	/* Of dump_session.topology. */
	const struct topology_node *gpu;
	int fd;
	uint32_t context;
	/* The uncorrectable memory errors of the GPU when its watch began. No parts, if the driver
	 * does not count them. */
	struct memory_errors memory_errors;
};

/* All zero but for the options: nothing has been dumped. */
struct dump_session {
	const struct options *options;
	/* CRIU knows that the images need the plugin, and those of older dumps are gone. */
	bool registered;
	/* CRIU has shown something of an AMD GPU, so a dump that fails removes its images. */
	bool has_gpu_files;
	struct topology topology;
	/* The second number of KFD's version. */
	uint32_t kfd_minor;
	/* The tasks of the dump, as CRIU names them before it shows their files. CRIU before 4.0
	 * does not name them: there they are the traced tasks of the tree that has the first file.
	 */
	struct pid_list tasks;
	bool tasks_are_named;
	/* All files of /dev/kfd that the tasks have, listed and grouped by process before the first
	 * one is saved. */
	struct dumped_file *files;
	size_t num_files;
	struct dumped_process *processes;
	size_t num_processes;
	/* Processes that map a GPU without /dev/kfd have been looked for. */
	bool mappings_are_checked;
	/* kfd_files_list() has succeeded. */
	bool files_are_listed;
	/* CRIU has begun to save tasks, and queues have stopped after that. */
	bool criu_saves;
	bool stopped_late;
	/* snapshot_stop() and snapshot_take() have succeeded. No rule is broken then. */
	bool has_stopped;
	bool has_snapshot;
	/* The limit of descriptors before it was raised. */
	struct rlimit old_limit;
	bool limit_raised;
	struct queue_answers queue_answers;
	/* The BOs that are one object, or NULL before CHECKPOINT. See src/dump/shared_bos.h. */
	struct shared_bos *shared;
	/* The images of the option base, or NULL. See src/dump/base_dir.h. */
	struct base *base;
	bool base_is_read;
	/* Contents that are being saved while CRIU goes on, or NULL. See src/dump/background.h. */
	struct background *background;
	/* Memory for contents that are written while the job runs again (behind.h), or NULL, and
	 * whether behind_prepare() has been called. */
	struct keep *keep;
	bool memory_is_taken;
	/* When the first queue stopped, on the clock of now_seconds(), or 0. */
	double stopped_at;
	/* The open render nodes of all tasks. */
	struct dumped_render *renders;
	size_t num_renders;
	/* The dma-bufs that CRIU has shown and that have no image yet. */
	struct dumped_dmabuf *dmabufs;
	size_t num_dmabufs;
	struct dumped_watch *watches;
	size_t num_watches;
	/* No GPU has lost memory while the contents were saved. */
	bool memory_is_checked;
	struct content_totals totals;
	/* The dump is over: the processes run again. */
	bool released;
	/* dump_complete() has succeeded. */
	bool completed;
	/* A process was unpaused, and could not be paused again. Which one it is, is not known. */
	bool lost_pause;
	/* Unpauses the processes if CRIU dies. */
	struct guard guard;
};

/* All rules, in the order of docs/refusals.md. src/preflight/preflight.c has their texts. */
enum dump_rule {
	DUMP_IS_PRE_DUMP,
	DUMP_IS_INCREMENTAL,
	DUMP_IS_LAZY,
	DUMP_GPU_IS_IN_RESET,
	DUMP_CWSR_IS_OFF,
	DUMP_HAS_NO_KFD_FILE,
	DUMP_FILE_OF_OTHER_PROCESS,
	DUMP_WITHOUT_ANY_VM,
	DUMP_GPU_WITHOUT_VM,
	DUMP_HAS_NO_BO,
	DUMP_HAS_CONTEXTS,
	DUMP_UNKNOWN_LAYOUT,
	DUMP_EVENT_TYPE,
	DUMP_HIGH_PRECISION,
	DUMP_MEMORY_COPIED,
	DUMP_QUEUE_TYPE,
	DUMP_QUEUE_XCCS,
	DUMP_QUEUE_WITHOUT_AREA,
	DUMP_QUEUE_STACK,
	DUMP_QUEUE_PARTITION,
	DUMP_QUEUE_GENERATION,
	DUMP_QUEUE_REFUSED,
	DUMP_QUEUE_XCCS_REFUSED,
	DUMP_BO_KIND,
	DUMP_BO_FLAGS,
	DUMP_BO_UNLISTED,
	DUMP_BO_HALVED,
	DUMP_BO_GENERATION,
	DUMP_BO_SHARED,
	DUMP_BO_OUTSIDE,
	DUMP_BO_HELD,
	DUMP_HAS_DMABUF,
	DUMP_HAS_GEM_OBJECTS,
	DUMP_MAPPING_WITHOUT_BO,
	DUMP_MAPPING_INSIDE_BO,
	DUMP_MAPPING_AMBIGUOUS,
	DUMP_MAPPING_OF_IMPORT,
	DUMP_RULES,
};

/* What @process says of the GPU @node, or NULL if it does not see that GPU. */
static inline const struct dumped_gpu *dump_find_gpu(const struct dumped_process *process,
						     const struct topology_node *node)
{
	for (size_t i = 0; i < process->num_gpus; i++) {
		if (process->gpus[i].render_minor == node->drm_render_minor)
			return &process->gpus[i];
	}
	return NULL;
}

/* Notes a task of the dump, by its pid here, which CRIU may name again. -ENOMEM after a line. */
int dump_add_task(struct dump_session *session, pid_t pid);
/* All tasks are stopped, and CRIU has saved nothing of them: lists their /dev/kfd files, stops the
 * queues of their processes, and takes the snapshot. Without files of GPUs does nothing. CRIU 4.0
 * gives the freezing of tasks a time, and this is a part of it, so there dump_look() takes the
 * snapshot. Later calls do nothing. Logs on error. */
int dump_stop(struct dump_session *session);
/* CRIU has met a device mapping, so all tasks are stopped: refuses tasks that map a GPU without an
 * open /dev/kfd, which CRIU would never show. Logs on error. */
int dump_check_mappings(struct dump_session *session);

/* CRIU shows a file of an AMD GPU as @fd (borrowed), and all tasks are stopped. The first call does
 * what dump_stop() has not done: prepares the image directory, stops the queues, takes the snapshot
 * of all tasks and applies the rules to it. Later calls do nothing. Logs on error. */
int dump_look(struct dump_session *session, int fd);
/* After dump_look(), for a /dev/kfd: gives @fd the image id @id. The contents of a process are
 * saved at its first /dev/kfd. Contents and images may still be missing when this returns. Logs on
 * error.
 */
int dump_kfd(struct dump_session *session, int fd, int id);
/* After each file: when CRIU has shown all KFD processes of the dump, finds out whether a GPU has
 * lost memory, and writes the images that name these processes. CRIU 4.0 to 4.2 call no hook
 * between the last file and the post-dump script. Logs on error. */
int dump_end_file(struct dump_session *session);

/* All files have been shown: waits for the contents of all processes, and finds out whether each
 * paused process has an image. Writes the images of dma-bufs that are missing. Later calls do
 * nothing. Logs on error. */
int dump_complete(struct dump_session *session);
/* Ends the dump with @result: unpauses every process, and removes the images if @result is an
 * error. If CRIU is going to kill the tasks, their queues stay stopped, and an error of UNPAUSE is
 * only logged. Logs on error. */
int dump_release(struct dump_session *session, int result);
void dump_done(struct dump_session *session);

#endif
