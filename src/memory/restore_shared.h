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

#endif
