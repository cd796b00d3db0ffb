/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a restore that outlives a hook. The folders of the restore share it; restore.h has
 * the steps. */
#ifndef AMDGPU_PLUGIN_SESSION_RESTORE_SESSION_H
#define AMDGPU_PLUGIN_SESSION_RESTORE_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu-amdgpu.pb-c.h"
#include "criu/guard.h"
#include "criu/options.h"
#include "image/image_set.h"
#include "kernel/gpu_use.h"
#include "kernel/kfd_priv.h"
#include "map/map.h"

struct gpu_file;
struct handoff;
struct import;
struct mapped_bo;
struct mapped_gpu;
struct restore_shared;

/* The open files of the task's GPUs, see memory/gpu_files.h. Begins all zero. */
struct gpu_files {
	struct gpu_file *files;
	size_t count;
};

/* Two for a file of open_filemap(), the rest for shared memory between two mappings of a run. */
#define RUN_FREE_FDS 16

/* Consecutive mappings of one file, for which CRIU uses one descriptor; see mappings.c. */
struct mappings_run {
	/* The string that CRIU passed, or NULL if there is no run. */
	const char *path;
	int fd;
	/* The lowest free numbers after the plugin had returned @fd. */
	int free_fds[RUN_FREE_FDS];
};

/* Begins all zero, but for @files and @num_pending. */
struct mappings {
	/* Borrowed. */
	struct gpu_files *files;
	struct mapped_bo *bos;
	size_t num_bos;
	/* @bos is sorted by address. */
	bool sorted;
	struct mapped_gpu *gpus;
	size_t num_gpus;
	/* Mappings that CRIU has not asked about yet, or -1 if the image does not say. */
	int64_t num_pending;
	/* See host_copies_mapping_fd(). */
	bool host_copies;
	struct mappings_run run;
};

/* The BOs that the task imports and those that it shares, see sharing/imports.h. Begins all zero.
 */
struct imports {
	struct import *list;
	size_t count;
	/* The handles of all BOs that RESTORE makes. */
	uint64_t *taken;
	size_t num_taken;
	/* How many of them imports_restore() has published. */
	size_t num_made;
};

/* The task that runs the restore hooks. Each task of a restored tree has its own copy. */
struct restored_task {
	/* The pid in the task's pid namespace, or 0 before the first hook. */
	pid_t vpid;
	/* The image of its KFD state, owned by this struct. NULL before it is read, and for a task
	 * without KFD state. */
	CriuKfd *kfd;
	int kfd_id;
	/* The layout of its private data, once it is valid. */
	struct kfd_layout layout;
	struct topology saved;
	struct topology local;
	struct gpu_map map;
	/* KFD should not give the process the GPUs of @local that @map leaves out. */
	bool hides_others;
	/* Why RESTORE fails if KFD does, or NULL. See extra_gpus.h. */
	const char *must_hide;
	/* KFD has given the process its GPUs. */
	bool kfd_opened;
	struct imports imports;
	/* @kfd is valid and its GPUs are mapped. */
	bool prepared;
	/* RESTORE has been called. */
	bool rebuilt;
	/* The restored /dev/kfd, which CRIU has not asked for yet. */
	bool has_early_fd;
	int early_fd;
	struct mappings mappings;
	struct gpu_files files;
};

/* What tells the machine's /dev from the /dev of a container, see devices/node.h. */
struct machine_dev {
	bool known;
	ino_t mount_namespace;
	/* The file system of /dev. */
	dev_t dev;
};

/* In CRIU's main process: what the first call of resume_task() has done. */
struct resumed {
	bool called;
	/* 0, or the error after which all tasks were killed. */
	int ret;
	/* The processes whose queues it has started. */
	struct pid_list processes;
};

/* Begins all zero, but for @options and @needed. */
struct restore_session {
	const struct options *options;
	/* CRIU's inventory says that the images need the plugin. */
	bool needed;
	/* The GPUs of all images; of a stream, those of the image that the task maps now. */
	struct map_tree tree;
	/* What the images have. Empty for a stream. */
	struct image_set images;
	bool tree_is_read;
	/* 0, or -errno if an image cannot be read, and the id of that image. */
	int tree_error;
	int tree_image;
	struct restored_task task;
	struct machine_dev machine_dev;
	/* From before CRIU forked the tasks, so it is the same for all of them. */
	struct gpu_use used_gpus;
	/* proc_pid_namespace() of CRIU's main process. */
	ino_t pid_namespace;
	/* NULL if each task loads its own contents. */
	struct handoff *handoff;
	struct restore_shared *shared;
	/* Empty if no image has GPU state, or all tasks have theirs. */
	struct guard guard;
	struct resumed resumed;
};

#endif
