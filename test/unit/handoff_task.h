/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks that hand contents to this process, which is CRIU's main process. Include fake_gpu.h
 * before.
 */
#ifndef TEST_UNIT_HANDOFF_TASK_H
#define TEST_UNIT_HANDOFF_TASK_H

#include "content_set.h"

#include <sys/wait.h>

#include "restore/handoff.h"

static const uint64_t sizes[] = { 3 * PAGE, MIB, PAGE, MIB / 4 + PAGE, 0 };

/* A task with one GPU and a complete image. */
static inline struct set *make_task_set(uint32_t number)
{
	struct set *set = make_set(sizes);

	set->job.gpu_id += number;
	set->job.render_minor += number % 2;
	write_image(set);
	return set;
}

/* The exit status is the negated result of handoff_send(). */
static inline pid_t fork_task(const struct handoff *handoff, const struct content_job *jobs,
			      size_t num_jobs)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(-handoff_send(handoff, jobs, num_jobs));
	return pid;
}

static inline int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static inline struct handoff *new_handoff(void)
{
	static struct content_totals totals;
	struct handoff *handoff;

	assert_int_equal(handoff_new(&settings, &totals, &handoff), 0);
	return handoff;
}

#endif
