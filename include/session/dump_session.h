/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a dump that outlives a hook, which the folders of the dump share. dump.h has the
 * steps. */
#ifndef AMDGPU_PLUGIN_SESSION_DUMP_SESSION_H
#define AMDGPU_PLUGIN_SESSION_DUMP_SESSION_H

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
#include "kernel/kfd_priv.h"
#include "kernel/memory_errors.h"
#include "kernel/render_node.h"

#define DUMP_NO_ID (-1)

struct background;
struct bo_index_entry;
struct dumped_dmabuf;
struct dumped_render;
struct shared_bos;

/* An open /dev/kfd of the dump. */
struct dumped_file {
	/* The plugin's descriptor of the file. */
	int fd;
	/* A task that has the file, by its pid here. */
	pid_t pid;
	/* The lowest vpid of the tasks that have it: CRIU opens the file again in that task. */
	pid_t reopen_vpid;
	/* Index of the process that owns the file, or DUMP_NO_PROCESS if it could not be paused. */
	size_t process;
	/* If it could not: -ENODEV if the process sees no GPU, -EBADF if it is not part of the
	 * dump. */
	int refusal;
};

/* How a dump saves contents, and when its images are complete. choose_way() in src/dump/dump.c
 * chooses once, before the first contents. If no thread can be started for the contents of a
 * process, these are saved at once.
 *
 *                   AT_ONCE       WHILE_CRIU        WRITEBACK            COPY_AT_ONCE
 *   chosen if       no thread     CRIU asks for     dump-memory          the same, but no
 *                   may outlive   the result later  has memory, too      thread may
 *                   a hook        (background.h)    (writeback.h)        outlive a hook
 *   copied by       dump_kfd()    dump_complete()   dump_complete()      dump_kfd()
 *   state images    dump_kfd()    dump_complete()   writeback_finish()   writeback_finish()
 *   queues start    dump_end()    dump_end()        dump_end()           dump_end()
 *
 * CRIU 4.3 calls dump_complete() in DUMP_DEVICES_LATE, and dump_end() in DUMP_FINISH. With older
 * CRIU, dump_end() calls dump_complete() itself, in the plugin's exit(). writeback_finish() runs
 * after exit(), when CRIU has let the tasks go, or in it if CRIU cannot call it later. After an
 * error of CRIU or of the plugin, dump_end() stops what is being saved, and removes the state
 * images. */
enum dump_way {
	DUMP_WAY_OPEN,
	DUMP_AT_ONCE,
	DUMP_WHILE_CRIU,
	DUMP_WRITEBACK,
	DUMP_COPY_AT_ONCE,
};

#define DUMP_NO_PROCESS SIZE_MAX
#define DUMP_NO_FILE    (-1)

/* Cached answers of src/preflight/queue_probe.h. */
struct queue_answers {
	struct queue_answer *list;
	size_t count;
};

/* All BOs with contents whose GPU is in the topology. */
struct bo_index {
	/* By device and offset. */
	struct bo_index_entry *entries;
	const struct bo_index_entry **by_inode;
	const struct bo_index_entry **by_addr;
	size_t count;
};

/* The render files of a process, each once, however many descriptors it has. */
struct gem_files {
	struct gem_file {
		/* In this process, and in the process. */
		int fd;
		int number;
		/* Borrowed. */
		const struct topology_node *gpu;
		struct gem_named {
			uint32_t handle;
			/* The object is of another PCI device, and @key is the inode of its
			 * dma-buf. Otherwise @key is its mmap offset. */
			bool is_import;
			uint64_t key;
		} * handles;
		size_t num_handles;
	} * list;
	size_t count;
};

/* A handle of a KFD process, for the image. */
struct gem_saved {
	uint32_t gpu_id;
	uint32_t handle;
	/* Index of a BO that is the object; IMAGE_NO_BO: the process has none. */
	uint32_t bo;
	/* As in gem_named. */
	bool is_import;
	uint64_t key;
	/* IMAGE_NO_BO: the number of the object in the dump, from 1, its size in bytes, and the
	 * process that makes it at a restore. shared_bos.c sets them. */
	uint32_t object;
	uint64_t size;
	pid_t owner;
	/* Of the object in this file. Only files with a handle of it can map it, but for KFD's BOs.
	 */
	uint64_t mmap_offset;
	/* Those that KFD has made are left out. */
	struct render_mapping *mappings;
	size_t num_mappings;
	/* Of the object, or NULL if it has none. */
	struct render_metadata *metadata;
};

struct gem_saved_list {
	struct gem_saved *list;
	size_t count;
	/* Those whose object is no BO of the process, and of the GPU of the file: by GPU and mmap
	 * offset. */
	const struct gem_saved **foreign;
	size_t num_foreign;
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
	/* The private data of @state, from CHECKPOINT on. */
	struct kfd_priv priv;
	/* Of the processes of the session, the first one whose dma-bufs were open when this one
	 * got its own. */
	size_t first_open;
	/* Finds the BO of a mapping. */
	struct bo_index bo_index;
	/* The mappings of devices. */
	struct proc_mapping *mappings;
	size_t num_mappings;
	/* The number of these for which a restoring CRIU calls UPDATE_VMA_MAP. */
	uint32_t num_updates;
	/* Its render files, with their GEM handles. */
	struct gem_files gem_files;
	/* The GEM handles for its image. */
	struct gem_saved_list gem;
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
	struct queue_answers queue_answers;
	/* The BOs that are one object, or NULL before CHECKPOINT. See src/sharing/shared_bos.h. */
	struct shared_bos *shared;
	/* The images of the option base, or NULL. See src/dump/base_dir.h. */
	struct base *base;
	bool base_is_read;
	enum dump_way way;
	/* Contents that are being saved, or NULL. See src/dump/background.h. */
	struct background *background;
	/* Memory for contents that are written while the job runs again (writeback.h), or NULL, and
	 * whether writeback_prepare() has been called. */
	struct pool *pool;
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
	/* Unpauses the processes if CRIU dies. */
	struct guard guard;
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

#endif
