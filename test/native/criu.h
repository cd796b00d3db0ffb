/* SPDX-License-Identifier: GPL-2.0-only */
/* The CRIU of the native tests: loads the plugin and calls its hooks in the order in which the given version of CRIU
 * does. It is both CRIU's main process and the task, so what the kernel says of the two is made believe
 * by the simulator (own_pid, traced). */
#ifndef TEST_NATIVE_CRIU_H
#define TEST_NATIVE_CRIU_H

#include <stdint.h>

#include "task.h"

/* The pid that the task sees, at the dump as at the restore. */
#define CRIU_TASK_PID 100

struct criu;

/* @version is one of 3.17.1, 4.1.1, 4.2.1 and 4.3; @hosts is the directory with what these export, @directory that of
 * the images, @log_level what CRIU's -v gives: 1 errors to 4 debug. -errno after a line on stderr. */
struct criu_setup {
	const char *version, *hosts, *plugin, *directory;
	int log_level;
};
int criu_load(const struct criu_setup *setup, struct criu **ret_criu);
void criu_unload(struct criu *criu);

/* What criu dump and criu restore ask of the plugin: 0, or the first error. The restored task has its files at the
 * numbers and its device mappings at the addresses that @task says. @map_memory gives the task the rest of its
 * memory, and may be NULL. */
int criu_dump(struct criu *criu, const struct task *task);
int criu_restore(struct criu *criu, const struct task *task, int (*map_memory)(void *argument),
		 void *argument);

/* How long each hook took, all its calls together: one line a hook on stdout. */
void criu_print_times(const struct criu *criu);

#endif
