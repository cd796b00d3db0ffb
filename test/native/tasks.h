/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks of a dump: this process itself, or a tree of several children. Children have
 * descriptors and mappings. This process plays their GPU side (the simulator's file "task"),
 * because a simulated machine belongs to one process. */
#ifndef TEST_NATIVE_TASKS_H
#define TEST_NATIVE_TASKS_H

#include "client.h"
#include "criu.h"

struct tasks {
	/* The tasks' buffers are those of the workload that the tasks were made from. */
	struct workload workloads[CRIU_TASKS_MAX];
	struct client *clients[CRIU_TASKS_MAX];
	struct task tasks[CRIU_TASKS_MAX];
	uint32_t count;
};

/* -errno after a line. The caller must end the tasks even after a failure. */
int tasks_make(const struct workload *workload, struct tasks *ret_tasks);
int tasks_save(const struct tasks *tasks, const char *directory);
/* Verifies every byte of all tasks. */
int tasks_verify(const struct tasks *tasks);
void tasks_end(struct tasks *tasks);

#endif
