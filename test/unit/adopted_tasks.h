/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks that a child of the test, which acts as CRIU, forks: the test shares their pids with it,
 * and adopts them when it dies. */
#ifndef TEST_ADOPTED_TASKS_H
#define TEST_ADOPTED_TASKS_H

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "host.h"

/* TASKS pids, 0 for a task that was not started or has ended. */
static pid_t *tasks;

static inline int adopted_tasks_begin(void **state)
{
	tasks = mmap(NULL, TASKS * sizeof(*tasks), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tasks == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -1;
	return unit_begin(state);
}

/* Also waits for guards, which may end a moment later than their CRIU. */
static inline int adopted_tasks_end(void **state)
{
	for (size_t i = 0; i < TASKS; i++) {
		if (tasks[i])
			(void)kill(tasks[i], SIGKILL);
	}
	while (waitpid(-1, NULL, __WALL) > 0)
		continue;
	(void)munmap(tasks, TASKS * sizeof(*tasks));
	return unit_end(state);
}

#endif
