/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a function after CRIU has let the tasks of a dump go, and before CRIU reports the result.
 *
 * CRIU has no hook there. In each version from 3.17.1 to 4.3, cr_dump_finish() ends and unloads the
 * plugins, then lets the tasks go (pstree_switch_state()), then writes its statistics, and then
 * returns to what reports the result. To write the statistics, it asks for their size through a
 * pointer in its table of messages. This unit replaces that pointer, and keeps the plugin loaded.
 *
 * The end of CRIU would be too late: libcriu, which crun and podman use, takes CRIU's answer and
 * ignores the exit status. It would also be too early to let the tasks go from a hook: CRIU
 * before 4.0 runs the post-dump script, unlocks the network and removes its links after the
 * plugins. A thread waits for storage: unlike a process, it ends with CRIU however CRIU ends, and
 * it has CRIU's memory and files.
 *
 * CRIU does not write its statistics if the post-dump script has failed (4.0 and newer). Then the
 * function runs when CRIU exits. */
#ifndef AMDGPU_PLUGIN_CRIU_AFTER_TASKS_H
#define AMDGPU_PLUGIN_CRIU_AFTER_TASKS_H

#include <stdbool.h>

/* Whether this CRIU has the table. */
bool after_tasks_is_possible(void);
/* Call this in the plugin's exit(), in CRIU's main process. @end runs once. If it returns an error,
 * CRIU exits with EXIT_FAILURE and sends no answer, which runc and libcriu report as an error.
 * False, logged: CRIU cannot create the file of its statistics, so it would report success
 * before @end has run. Then @end does not run. */
bool after_tasks_run(int (*end)(void));

#endif
