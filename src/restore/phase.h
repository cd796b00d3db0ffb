/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef AMDGPU_PLUGIN_RESTORE_PHASE_H
#define AMDGPU_PLUGIN_RESTORE_PHASE_H

/* How far the KFD state of a task has come: one byte a pid, in memory that all tasks share. */
enum task_phase {
	PHASE_NONE,
	PHASE_IN_PROGRESS,
	/* All but the contents, which the main process fills in. */
	PHASE_HANDED_OFF,
	PHASE_DONE,
	PHASE_RESUMED,
};

#endif
