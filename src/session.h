/* SPDX-License-Identifier: GPL-2.0-only */
/* All that outlives a hook: one struct in the entry unit, known to the units that decide what a
 * dump or a restore does. */
#ifndef AMDGPU_PLUGIN_SESSION_H
#define AMDGPU_PLUGIN_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "amdgpu_plugin_topology.h"
#include "criu-amdgpu.pb-c.h"
#include "criu/guard.h"
#include "criu/options.h"
#include "dump/bo_index.h"
#include "kernel/proc.h"
#include "map/map.h"
#include "restore/handoff.h"
#include "restore/mappings.h"
#include "restore/restore_guard.h"

/* In a dump, descriptors of the plugin in CRIU's process are numbered from here. */
#define DUMP_LOWEST_FD 512

#define DUMP_NO_ID (-1)

/* A KFD process of the dump: one for each process, however many files of /dev/kfd it has. */
struct dumped_process {
	/* Of the file whose image holds the state; DUMP_NO_ID: CRIU has not come to it yet. */
	int id;
	/* A descriptor of that file, kept until the process is unpaused. */
	int fd;
	bool paused;
	/* Pid as this process sees it; 0: not known. */
	pid_t pid;
	/* Pid as the process sees itself. */
	pid_t vpid;
	/* Of its core image, when it was paused; all zero: there was none. */
	struct timespec core_time;
	/* The same of the process in which CRIU is going to open the file again; 0: not known. */
	pid_t reopen_vpid;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	uint64_t priv_data_size;
	/* The GPUs that the process sees; none before CHECKPOINT. */
	struct dumped_gpu {
		uint32_t render_minor;
		uint32_t user_gpu_id;
		/* A BO of the GPU has this mmap offset. Only the process's compute file maps it. */
		bool has_bo;
		uint64_t bo_offset;
		/* CRIU has shown the compute file. */
		bool found;
	} * gpus;
	size_t num_gpus;
	/* By these the BO of a mapping is found, and buffers of several processes
	 * are recognised as one. */
	struct bo_index places;
};

/* A render node of the dump. */
struct dumped_render {
	int id;
	/* Kept while it is unknown whether this is the file of some process's compute VM. */
	int fd;
	uint32_t render_minor;
	/* Its image waits for that too, as a stream cannot be written again. */
	bool unwritten;
	/* The GPU's id in the image. */
	uint32_t gpu_id;
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
	struct mappings vmas;
};

/* How far the KFD state of a task has come: one byte a pid, in memory that all tasks share. */
enum task_phase {
	PHASE_NONE,
	PHASE_IN_PROGRESS,
	/* All but the contents, which the main process fills in. */
	PHASE_HANDED_OFF,
	PHASE_DONE,
	PHASE_RESUMED,
};

struct session {
	struct options options;
	int stage;
	bool noted;
	/* Something of the dump is ours, so what a dump that failed has left is, too. */
	bool involved;
	struct topology topology;
	bool has_topology;
	/* Of a dump, as the host has named them before it shows anything; none: this host does
	 * not. */
	struct pid_list tasks;
	struct dumped_process *processes;
	size_t num_processes;
	/* Those without a file of KFD have been looked for, too. */
	bool mappings_are_checked;
	/* All of them have been looked for, and stopped. */
	bool tree_is_paused;
	/* They run again, as the dump is over. */
	bool released;
	/* A process that unpauses them if CRIU dies. */
	struct guard guard;
	struct dumped_render *renders;
	size_t num_renders;
	struct restored_task task;
	/* The inventory says that the images hold something of ours. */
	bool needed;
	/* NULL: the tasks fill in their contents themselves. */
	struct handoff *handoff;
	/* Indexed by pid as the task sees itself; see restore.c. */
	uint8_t *task_phases;
	/* NULL: there is nothing to restore. */
	struct restore_guard *restore_guard;
};

/* The first thing of ours in this dump: tells CRIU that the images need the plugin, and
 * makes sure that they will all be of this dump, also those of the process's memory. Does
 * nothing when called again. */
int session_note(struct session *session);
/* The topology of this machine, read once a dump. */
int session_topology(struct session *session, const struct topology **ret_topology);

#endif
