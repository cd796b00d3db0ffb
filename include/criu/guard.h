/* SPDX-License-Identifier: GPL-2.0-only */
/* A process that outlives CRIU. Whoever is killed undoes nothing himself, and the driver
 * undoes nothing for him: so another process waits for his end, and does then what may
 * not be left undone. */
#ifndef AMDGPU_PLUGIN_CRIU_GUARD_H
#define AMDGPU_PLUGIN_CRIU_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What a guard is called, for ps and the like: it is not the CRIU that somebody
 * may be waiting for. */
#define GUARD_NAME "amdgpu_guard"

/* For who has started one; { 0 }: none. */
struct guard {
	pid_t pid;
	/* A pidfd: by its number, one that somebody else has waited for could
	 * be taken for another. */
	int fd;
};

/* What a guard does. It has a copy of this process's memory as it is at the start, and of its
 * descriptors those in @fds alone: a pipe that this process closes is closed. */
struct guard_duty {
	/* @criu is a pidfd of the process that started the guard. When this
	 * returns, the guard ends. */
	void (*watch)(void *argument, int criu);
	void *argument;
	const int *fds;
	size_t num_fds;
};

/* To be called while this process has one thread. CRIU does not notice the guard: it is a child
 * without a signal for its end, and a wait() for any child does not find it. (One with __WALL does,
 * when it has ended.) -ECHILD: it lacks memory. */
int guard_start(const struct guard_duty *duty, struct guard *ret_guard);
/* Ends it before it does anything, or after it has done all. *@guard is
 * none afterwards; accepts none. */
void guard_end(struct guard *guard);

/* For the guard: whether the CRIU of that pidfd has ended, by then without any thread and without
 * tracees; waits at most @timeout_ms. Where the kernel does not say, it has not. */
bool guard_criu_has_ended(int pidfd, int timeout_ms);
/* Returns when it has. */
void guard_await_criu(int pidfd);

#endif
