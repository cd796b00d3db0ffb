// SPDX-License-Identifier: GPL-2.0-only
/* Kills the tasks of a restore if CRIU ends before all of them have their GPU state. resume.c ends
 * the guard then. */
#include "restore/restore_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/guard.h"
#include "criu/host.h"
#include "criu/log.h"
#include "kernel/proc.h"
#include "memory/restore_shared.h"
#include "session/restore_session.h"

/* A task waits so long for the guard, in seconds. */
#define ANSWER_LIMIT_S 60

enum answer {
	ANSWER_NONE,
	/* The guard knows all tasks and will kill them. */
	ANSWER_KNOWN,
	/* The guard cannot find all tasks. */
	ANSWER_UNKNOWN,
	/* CRIU has died. */
	ANSWER_DEAD,
};

/* The guard's own data. It has pidfds, because the pid of a dead task may be reused. */
struct watch {
	struct restore_shared *shared;
	pid_t criu;
	pid_t above_criu;
	/* CRIU's descriptor store, or negative. */
	int store;
	int *pidfds;
	size_t count;
};

static void answer(struct restore_shared *shared, enum answer what)
{
	__atomic_store_n(&shared->answer, what, __ATOMIC_RELEASE);
	futex_wake_all(&shared->answer);
}

/* The root of the task tree of @pid. The root's parent is CRIU, or CRIU's parent if a container
 * runtime asked for that. -ESRCH: @pid has lost its parent and is in no such tree. */
static int find_root(const struct watch *watch, pid_t pid, pid_t *ret_root)
{
	struct proc_status status = { 0 };
	int ret = proc_read_status(pid, &status);

	while (!ret && status.parent && status.parent != watch->criu &&
	       status.parent != watch->above_criu) {
		pid = status.parent;
		ret = proc_read_status(pid, &status);
	}
	if (!ret && !status.parent)
		ret = -ESRCH;
	*ret_root = pid;
	return ret;
}

/* Adds the tree of @pid, if it is in one. */
static int add_tree(const struct watch *watch, pid_t pid, struct pid_list *tasks)
{
	_cleanup_(pid_list_done) struct pid_list tree = { 0 };
	pid_t root = 0;
	int ret = find_root(watch, pid, &root);

	if (ret == -ESRCH)
		return 0;
	if (!ret)
		ret = proc_list_tree(root, &tree);
	for (size_t i = 0; !ret && i < tree.count; i++)
		ret = pid_list_add(tasks, tree.pids[i]);
	return ret;
}

/* CRIU forks all tasks before a task restores files, unless it is killed before. Only tasks of this
 * CRIU map the shared memory. A task without a GPU may be further ahead and have unmapped it, but
 * it is in the same tree. -ESRCH: not all tasks that have registered are there; /proc may hide
 * them.
 */
static int find_tasks(const struct watch *watch, struct pid_list *ret_tasks)
{
	_cleanup_(pid_list_done) struct pid_list sharers = { 0 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size = (sizeof(*watch->shared) + page - 1) / page * page;
	uint32_t registered = __atomic_load_n(&watch->shared->registered, __ATOMIC_ACQUIRE);
	int ret = proc_list_sharers(watch->shared, size, &sharers);
	uint32_t found = 0;

	for (size_t i = 0; !ret && i < sharers.count; i++) {
		pid_t pid = sharers.pids[i];

		if (pid == getpid() || pid == watch->criu)
			continue;
		found++;
		if (pid_list_has(ret_tasks, pid))
			continue;
		ret = add_tree(watch, pid, ret_tasks);
		if (!ret && !pid_list_has(ret_tasks, pid))
			ret = pid_list_add(ret_tasks, pid);
	}
	return !ret && found < registered ? -ESRCH : ret;
}

static int note_tasks(struct watch *watch)
{
	_cleanup_(pid_list_done) struct pid_list tasks = { 0 };
	int ret = find_tasks(watch, &tasks);

	watch->pidfds = calloc(tasks.count + 1, sizeof(*watch->pidfds));
	if (!watch->pidfds)
		return -ENOMEM;
	for (size_t i = 0; i < tasks.count; i++) {
		int fd = (int)syscall(SYS_pidfd_open, tasks.pids[i], 0);

		if (fd >= 0)
			watch->pidfds[watch->count++] = fd;
		else if (errno != ESRCH)
			ret = -errno;
	}
	return ret;
}

/* If CRIU has ended already, a task may have been forked since, and it must fail. */
static enum answer choose_answer(struct watch *watch, int criu)
{
	if (note_tasks(watch) < 0)
		return ANSWER_UNKNOWN;
	return guard_process_has_ended(criu, 0) ? ANSWER_DEAD : ANSWER_KNOWN;
}

/* Also kills those tasks that it has found if it has not found all. */
static void watch_tasks(void *argument, int criu)
{
	struct watch *watch = argument;
	struct restore_shared *shared = watch->shared;

	while (!__atomic_load_n(&shared->registered, __ATOMIC_ACQUIRE) &&
	       !guard_process_has_ended(criu, 0))
		futex_wait_while(&shared->registered, 0, 1);
	answer(shared, choose_answer(watch, criu));
	guard_await_main_thread(criu);
	for (size_t i = 0; i < watch->count; i++)
		(void)syscall(SYS_pidfd_send_signal, watch->pidfds[i], SIGKILL, NULL, 0);
	guard_await_criu(criu);
	host_empty_store(watch->store);
}

int restore_guard_start(struct restore_session *session)
{
	struct watch watch = { .shared = session->shared,
			       .criu = getpid(),
			       .above_criu = getppid(),
			       .store = host_find_store() };
	const struct guard_ops ops = {
		.watch = watch_tasks, .argument = &watch, .fds = &watch.store, .num_fds = 1
	};

	return guard_start(&ops, &session->guard);
}

int restore_guard_register(const struct restore_session *session)
{
	struct restore_shared *shared = session->shared;

	if (!session->guard.pid)
		return 0;
	(void)__atomic_add_fetch(&shared->registered, 1, __ATOMIC_ACQ_REL);
	futex_wake_all(&shared->registered);
	for (int i = 0; i < ANSWER_LIMIT_S && !__atomic_load_n(&shared->answer, __ATOMIC_ACQUIRE);
	     i++)
		futex_wait_while(&shared->answer, ANSWER_NONE, 1);
	switch (__atomic_load_n(&shared->answer, __ATOMIC_ACQUIRE)) {
	case ANSWER_KNOWN:
		return 0;
	case ANSWER_NONE:
		return log_error(
			-ETIMEDOUT,
			"restore: the guard does not answer, so nothing would kill this task if CRIU died");
	case ANSWER_UNKNOWN:
		return log_error(
			-ECHILD,
			"restore: the guard cannot find this task, so nothing would kill it if CRIU died");
	default:
		return log_error(-EPIPE, "restore: CRIU's main process has ended");
	}
}
