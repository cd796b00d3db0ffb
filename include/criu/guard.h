/* SPDX-License-Identifier: GPL-2.0-only */
/* A guard: a process that outlives CRIU and cleans up after it. A killed CRIU cannot unpause
 * the job, and the driver does not do it either.
 *
 * The guard survives a signal to CRIU, to its process group or to its session, and the OOM killer
 * spares it. It does not survive a kill of CRIU's whole cgroup or pid namespace. A CRIU that hangs
 * counts as alive: the guard waits. */
#ifndef AMDGPU_PLUGIN_CRIU_GUARD_H
#define AMDGPU_PLUGIN_CRIU_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The name of the process in ps(1). Tools that wait for a process named criu must not find the
 * guard. */
#define GUARD_NAME "amdgpu_guard"

/* A running guard, as CRIU holds it, or { 0 }. */
struct guard {
	pid_t pid;
	/* A pidfd. Other code of CRIU may wait for the guard, and then the pid may be reused. */
	int fd;
};

struct guard_ops {
	/* Runs in the guard, with a copy of CRIU's memory at the time of the start. @criu is a
	 * pidfd of CRIU. When the function returns, the guard exits. */
	void (*watch)(void *argument, int criu);
	void *argument;
	/* The descriptors that the guard inherits; -1 is skipped. It closes all others, so a pipe
	 * that CRIU closes is really closed. */
	const int *fds;
	size_t num_fds;
};

/* Starts a guard. Call it while CRIU has one thread. A wait() for any child does not find the
 * guard, because it ends without a signal; only a wait() with __WALL or __WCLONE does. -ECHILD: the
 * guard ended during its start, for lack of memory. */
int guard_start(const struct guard_ops *ops, struct guard *ret_guard);
/* Starts a guard that is no child of CRIU, for the time after the dump: CRIU waits for all its
 * children before it ends. The dump cannot end this guard, so @ops->watch must return when it is
 * not needed any more. -ECHILD: it would become CRIU's child again, because CRIU is the init of its
 * pid namespace or a subreaper; or it ended during its start. */
int guard_start_orphan(const struct guard_ops *ops);
/* Kills the guard and waits for its end; afterwards *@guard is empty. Accepts an empty guard. */
void guard_end(struct guard *guard);

/* For the guard: whether all threads of a process have ended. A CRIU that has ended traces no task
 * any more. Waits at most @timeout_ms. False if the kernel reports an error. */
bool guard_process_has_ended(int pidfd, int timeout_ms);
/* For the guard: returns after CRIU has ended. */
void guard_await_criu(int pidfd);
/* For a guard that guard_start() has started: returns when CRIU's main thread ends. From then on
 * CRIU's tasks run. Other threads of CRIU may end seconds later, because the driver lets none of
 * them end before its copies. */
void guard_await_main_thread(int pidfd);

#endif
