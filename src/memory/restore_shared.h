/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that CRIU's main process shares with all restored tasks. */
#ifndef AMDGPU_PLUGIN_MEMORY_RESTORE_SHARED_H
#define AMDGPU_PLUGIN_MEMORY_RESTORE_SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/proc.h"

/* The progress of a task's KFD state. */
enum task_phase {
	PHASE_NONE,
	/* If the restore stops in this phase, the task must not run. */
	PHASE_IN_PROGRESS,
	/* The main process loads the contents; everything else is restored. */
	PHASE_HANDED_OFF,
	PHASE_DONE,
};

struct content_totals;
struct restore_shared;

/* In CRIU's main process, before CRIU forks the tasks. */
int restore_shared_new(struct restore_shared **ret_shared);
/* Accepts NULL. */
void restore_shared_free(struct restore_shared *shared);

enum task_phase restore_shared_phase(const struct restore_shared *shared, pid_t vpid);
void restore_shared_set_phase(struct restore_shared *shared, pid_t vpid, enum task_phase phase);
/* How many tasks have left PHASE_NONE. */
unsigned int restore_shared_count(const struct restore_shared *shared);

/* Memory of task @vpid that GPUs use. -ENOSPC: there is no more room. */
int restore_shared_add_range(struct restore_shared *shared, pid_t vpid, struct proc_range range);
/* Memory number @index; -ENOENT: there are not so many. */
int restore_shared_get_range(const struct restore_shared *shared, uint32_t index, pid_t *ret_vpid,
			     struct proc_range *ret_range);

/* The contents that all tasks have loaded. */
struct content_totals *restore_shared_totals(struct restore_shared *shared);

/* Whether the main process takes over the contents of tasks. */
bool restore_shared_handoff_is_ready(const struct restore_shared *shared);
void restore_shared_set_handoff_ready(struct restore_shared *shared);

/* The VRAM of GPU @gpu_id that tasks are about to get from the driver, and adding to it. Two tasks
 * must not take the same free memory for theirs. */
uint64_t restore_shared_claimed_vram(const struct restore_shared *shared, uint32_t gpu_id);
void restore_shared_claim_vram(struct restore_shared *shared, uint32_t gpu_id, uint64_t bytes);
/* By gpu_id of a GPU of this machine: the saved GPU (actual_gpu_id) that it replaces, or 0. For
 * map_decide_in_tree(). */
const uint32_t *restore_shared_claims(const struct restore_shared *shared);
/* Claims GPU @gpu_id for @saved_id. Returns the saved GPU that has it. */
uint32_t restore_shared_claim_gpu(struct restore_shared *shared, uint32_t gpu_id,
				  uint32_t saved_id);

/* Whether a task has made this render node in its /dev, or is about to. */
bool restore_shared_has_made_node(const struct restore_shared *shared, uint32_t minor);
void restore_shared_note_made_node(struct restore_shared *shared, uint32_t minor);

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

/* Which share handle the tasks of a restore give an object of AMD's out-of-tree driver. */
enum object_name {
	NAME_OPEN,
	NAME_SAVED,
	NAME_FRESH,
};

/* The decision of the first task that has @wish, unless that is NAME_OPEN. Object 0 is the task's
 * own. */
enum object_name restore_shared_name(struct restore_shared *shared, uint32_t number,
				     enum object_name wish);
/* Makes another share handle of the one at @handle, the same in all tasks. */
void restore_shared_rename(const struct restore_shared *shared, uint32_t *handle);

#endif
