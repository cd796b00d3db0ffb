/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that CRIU's main process shares with all restored tasks. */
#ifndef AMDGPU_PLUGIN_MEMORY_RESTORE_SHARED_H
#define AMDGPU_PLUGIN_MEMORY_RESTORE_SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "content/content.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "map/map_tree.h"

/* The progress of a task's KFD state. */
enum task_phase {
	PHASE_NONE,
	/* If the restore stops in this phase, the task must not run. */
	PHASE_IN_PROGRESS,
	/* The main process loads the contents; everything else is restored. */
	PHASE_HANDED_OFF,
	PHASE_DONE,
};

/* Memory ranges of all tasks together. */
#define RESTORE_SHARED_RANGES (1u << 20)
#define RESTORE_SHARED_GPUS   (KFD_GPU_ID_MAX + 1)

/* The objects of the restore. The task that makes an object publishes its dma-buf, and the tasks
 * that import it wait for that. A task publishes all its objects before it waits for the first, so
 * tasks that import from each other do not wait forever. */

/* A GPU, and its topology_pci_device(), as its machine names them. */
struct object_gpu {
	uint32_t gpu_id;
	uint64_t device;
};

struct object {
	/* Id of the dma-buf in CRIU's descriptor store. */
	int store_id;
	/* The GPU that has the memory, on this machine and on that of the dump. */
	struct object_gpu gpu;
	struct object_gpu saved_gpu;
	/* Offset of the object in the render nodes of that GPU's PCI device. */
	uint64_t mmap_offset;
};

/* Which share handle the tasks of a restore give an object of AMD's out-of-tree driver. */
enum object_name {
	NAME_OPEN,
	NAME_SAVED,
	NAME_FRESH,
};

/* Begins all zero. The kernel allocates only those pages of the tables that are written. */
struct restore_shared {
	/* The main process takes over the contents of tasks. */
	_Atomic bool handoff_is_ready;
	/* The contents that all tasks have loaded. */
	struct content_totals totals;
	struct log_first first_error;
	/* How many tasks have left PHASE_NONE, and the phase of each task, by vpid. */
	_Atomic unsigned int num_tasks;
	_Atomic uint8_t phases[PROC_PIDS_MAX];
	/* By gpu_id: the VRAM that tasks are about to get from the driver. Two tasks must not take
	 * the same free memory for theirs. */
	_Atomic uint64_t claimed_vram[RESTORE_SHARED_GPUS];
	/* By gpu_id of a GPU of this machine: the saved GPU (actual_gpu_id) that it replaces, or 0.
	 * For map_decide_in_tree(). */
	uint32_t claims[MAP_CLAIMS];
	/* A task has made this render node in its /dev, or is about to. */
	_Atomic bool made_nodes[RENDER_NODE_MINOR_LAST + 1];
	/* Memory of tasks that GPUs use. Counts ranges beyond the end of the table, too. */
	_Atomic uint32_t num_ranges;
	struct {
		pid_t vpid;
		struct proc_range range;
	} ranges[RESTORE_SHARED_RANGES];
	/* Futexes: the number of tasks that have registered with the guard, and what the guard has
	 * answered (restore_guard.c). */
	uint32_t registered;
	uint32_t answer;
	/* A futex, which changes with each announcement. */
	uint32_t announcements;
	/* The vpid of a task that has failed, or 0. */
	_Atomic pid_t failed;
	/* Random bits, which change a share handle into another one. */
	uint32_t rename[KFD_SHARE_WORDS];
	/* Whether the task has published all its objects, by vpid. */
	_Atomic bool complete[PROC_PIDS_MAX];
	struct slot {
		_Atomic bool taken;
		_Atomic bool published;
		enum object_name name;
		struct object object;
	} slots[IMAGE_OBJECTS_MAX];
};

/* In CRIU's main process, before CRIU forks the tasks. */
int restore_shared_new(struct restore_shared **ret_shared);
/* Accepts NULL. */
void restore_shared_free(struct restore_shared *shared);

/* Of the calling task. */
void restore_shared_set_phase(struct restore_shared *shared, pid_t vpid, enum task_phase phase);
/* Memory of task @vpid that GPUs use. -ENOSPC: there is no more room. */
int restore_shared_add_range(struct restore_shared *shared, pid_t vpid, struct proc_range range);
/* Claims GPU @gpu_id for @saved_id. Returns the saved GPU that has it. */
uint32_t restore_shared_claim_gpu(struct restore_shared *shared, uint32_t gpu_id,
				  uint32_t saved_id);

/* Publishes object @number, from 1 to IMAGE_OBJECTS_MAX. -EEXIST: another BO is this object. */
int restore_shared_publish(struct restore_shared *shared, uint32_t number,
			   const struct object *object);
/* Task @vpid has published all its objects, or has none: waiting tasks go on. */
void restore_shared_announce(struct restore_shared *shared, pid_t vpid);
/* -ENOENT: object @number is not published. */
int restore_shared_find(struct restore_shared *shared, uint32_t number, struct object *ret_object);
/* Waits until task @owner has published it. -ETIME: not yet, after a second. -ENODATA: the task has
 * published all its objects, and this one is not among them. -ECANCELED: a task has failed, and
 * CRIU is going to kill all of them; *@ret_failed is its vpid. */
int restore_shared_await(struct restore_shared *shared, uint32_t number, pid_t owner,
			 struct object *ret_object, pid_t *ret_failed);
/* Task @vpid fails: the others do not wait any more. Accepts NULL. */
void restore_shared_fail(struct restore_shared *shared, pid_t vpid);

/* The decision of the first task that has @wish, unless that is NAME_OPEN. Object 0 is the task's
 * own. */
enum object_name restore_shared_name(struct restore_shared *shared, uint32_t number,
				     enum object_name wish);
/* Makes another share handle of the one at @handle, the same in all tasks. */
void restore_shared_rename(const struct restore_shared *shared, uint32_t *handle);

#endif
