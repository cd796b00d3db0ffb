/* SPDX-License-Identifier: GPL-2.0-only */
/* The CRIU of the native tests: loads the plugin and calls its hooks in the order in which the
 * given version of CRIU does. A dump is of the process itself, or of children that it has made and
 * plays the GPU side of; a restore makes children of it. So what the kernel says of pids and
 * tracers is made believe by the simulator (own_pid, traced). */
#ifndef TEST_NATIVE_CRIU_H
#define TEST_NATIVE_CRIU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "task.h"

/* The pid that the first task sees, at the dump as at the restore; those of others follow. */
#define CRIU_TASK_PID  100
#define CRIU_TASKS_MAX 64

/* CRIU's own descriptors lie above those of the task. */
#define CRIU_LOWEST_FD 200

struct criu;
struct workload;

/* @version is one of 3.17.1, 3.18, 3.19, 4.0, 4.1.1, 4.2.1 and 4.3, or newer or strange, which do
 * not exist; @hosts is the directory with what these export, @directory that of the images,
 * @log_level what CRIU's -v gives: 1 errors to 4 debug;
 * @memory a file that a dump writes to its images after the last task, as the memory of the tasks,
 * or NULL. -errno after a line on stderr. */
struct criu_setup {
	const char *version, *hosts, *plugin, *directory;
	int log_level;
	const char *memory;
	const struct workload *workload; /* of the only task, or NULL */
	bool streams, captures;          /* its images: to a streamer or from one */
	bool ends_tasks;                 /* it is going to kill the tasks of a dump that succeeds */
};
int criu_load(const struct criu_setup *setup, struct criu **ret_criu);
void criu_unload(struct criu *criu);

/* What criu dump asks of the plugin: 0, or the first error. */
int criu_dump(struct criu *criu, const struct task *tasks, size_t num_tasks);

/* What the restored task does besides, in its own process: begin, before anything of it comes back;
 * map_memory, the memory that CRIU puts back, before it is resumed; resume, when the GPU runs its
 * queues, and other tasks are not resumed yet; live, when all tasks run again; fail, when all of it
 * was there and CRIU does not let it run. And in the main process: resumed. */
struct criu_task {
	void (*begin)(void *argument);
	int (*map_memory)(void *argument);
	int (*resume)(void *argument);
	int (*live)(void *argument);
	void (*fail)(void *argument);
	void (*resumed)(void *argument, pid_t task);
	void *argument;
};

/* What criu restore asks of the plugin, and tasks of its own: 0, or the first error. Each task has
 * its files at the numbers and its device mappings at the addresses that @tasks say, and does what
 * stands in @own in its place. */
int criu_restore(struct criu *criu, const struct task *tasks, const struct criu_task *own,
		 size_t num_tasks);

/* How long each hook took, all its calls together: one line a hook on stdout. */
void criu_print_times(const struct criu *criu);

#endif
