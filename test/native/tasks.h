/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks of a dump: this process itself, or a tree of several children, which have descriptors
 * and mappings but let this process play their GPU side (the simulator's file "task"), as a
 * simulated machine is one process's. */
#ifndef TEST_NATIVE_TASKS_H
#define TEST_NATIVE_TASKS_H

#include "client.h"
#include "criu.h"

struct tasks {
	/* Their buffers are those of the one that they were made of. */
	struct workload workloads[CRIU_TASKS_MAX];
	struct client *clients[CRIU_TASKS_MAX];
	struct task tasks[CRIU_TASKS_MAX];
	uint32_t count;
};

/* -errno after a line. To be ended also after a failure. */
int tasks_make(const struct workload *workload, struct tasks *ret_tasks);
int tasks_save(const struct tasks *tasks, const char *directory);
/* Every byte of all of them. */
int tasks_verify(const struct tasks *tasks);
void tasks_end(struct tasks *tasks);

#endif
