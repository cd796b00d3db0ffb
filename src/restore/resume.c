// SPDX-License-Identifier: GPL-2.0-only
/* The part of CRIU's main process in a restore: it loads the contents that tasks hand over, and
 * starts the queues of all tasks, or kills all tasks if one has incomplete GPU state. */
#include "restore/resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "criu/host.h"
#include "criu/log.h"
#include "kernel/cgroup.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "memory/restore_shared.h"
#include "memory/user_memory.h"
#include "restore/handoff.h"
#include "restore/reap.h"
#include "session/restore_session.h"

void resume_listen(struct restore_session *session)
{
	int ret;

	/* CRIU's main process loads while the tasks start their threads. */
	if (!cgroup_room_has_threads()) {
		log_warn(
			"contents: a limit of processes leaves little room for the threads of the job, so each task loads its own; a higher pids.max makes this faster");
		return;
	}
	ret = handoff_listen(session->handoff);
	if (ret < 0)
		log_warn(
			"contents: CRIU's main process cannot start a thread that loads them: %s; each task loads its own",
			strerror(-ret));
	else
		session->shared->handoff_is_ready = true;
}

/* A task with KFD state. */
struct gpu_task {
	pid_t pid;
	pid_t vpid;
	enum task_phase phase;
};

struct resume {
	struct restore_session *session;
	/* All tasks of the restore. CRIU traces them. */
	struct pid_list tasks;
	struct gpu_task *gpu_tasks;
	size_t num_gpu_tasks;
};

static void resume_done(struct resume *resume)
{
	pid_list_done(&resume->tasks);
	free(resume->gpu_tasks);
}

static int add_task(struct resume *resume, pid_t pid)
{
	struct gpu_task task = { .pid = pid };
	int ret = proc_vpid(pid, &task.vpid);

	/* The task has ended. */
	if (ret == -ESRCH)
		return 0;
	if (ret < 0)
		return log_error(ret, "process %d: cannot determine whether it has GPU state", pid);
	task.phase = resume->session->shared->phases[task.vpid % PROC_PIDS_MAX];
	if (task.phase == PHASE_NONE)
		return 0;
	ret = array_append(&resume->gpu_tasks, &resume->num_gpu_tasks, sizeof(task), &task);
	return ret < 0 ? log_error(ret, "process %d: cannot record its GPU state", pid) : 0;
}

/* The contents may take minutes. If CRIU dies meanwhile, no task may run without them. */
static int bind_tasks(struct resume *resume)
{
	int ret = proc_list_tracees(&resume->tasks);

	if (ret < 0)
		return log_error(ret, "restore: cannot list the tasks");
	ret = reap_bind(&resume->tasks);
	if (ret < 0)
		return log_error(ret, "restore: cannot bind the tasks to CRIU's life");
	log_info("restore: %zu tasks end with CRIU until their queues run", resume->tasks.count);
	return 0;
}

/* All tasks are complete now. CRIU lets them go one by one, and if it dies meanwhile, those that it
 * still traces must run, too. The guard ends after this function: until then it kills all tasks if
 * CRIU dies, so there is no moment at which only some of them would be killed. */
static int unbind_tasks(const struct resume *resume)
{
	int ret = reap_unbind(&resume->tasks);

	return ret < 0 ? log_error(ret, "restore: cannot unbind the tasks from CRIU's life") : 0;
}

static int list_gpu_tasks(struct resume *resume, unsigned int expected)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < resume->tasks.count; i++)
		ret = add_task(resume, resume->tasks.pids[i]);
	if (!ret && resume->num_gpu_tasks != expected)
		ret = log_error(
			-ESRCH,
			"restore: %zu of %u processes with GPU state are there; the others have ended",
			resume->num_gpu_tasks, expected);
	return ret;
}

static int check_phase(struct restore_session *session, const struct gpu_task *task)
{
	(void)session;
	return task->phase == PHASE_IN_PROGRESS
		       ? log_error(-EIO, "process %d: its GPU state is incomplete", task->pid)
		       : 0;
}

static int await_contents(struct restore_session *session, const struct gpu_task *task)
{
	return task->phase == PHASE_HANDED_OFF ? handoff_finish(session->handoff, task->pid) : 0;
}

/* The driver takes a page that a userfaultfd has to fill for an unmapped one (hmm_range_fault()
 * gives EFAULT), and starts the queues without it: the GPU's accesses to that memory would be lost.
 */
static int check_lazy_memory(struct restore_session *session, const struct gpu_task *task)
{
	int ret = proc_has_lazy_memory(task->pid);

	(void)session;
	if (ret < 0)
		return log_error(ret, "process %d: cannot determine whether its memory is complete",
				 task->pid);
	return ret ? log_error(
			     -EOPNOTSUPP,
			     "process %d: cannot start its queues, because memory that the GPU uses may be missing; restore without --lazy-pages",
			     task->pid)
		   : 0;
}

static int check_user_memory(struct restore_session *session, const struct gpu_task *task)
{
	return user_memory_check(session, task->pid, task->vpid);
}

static int start_queues(struct restore_session *session, const struct gpu_task *task)
{
	int ret = pid_list_add(&session->resumed.processes, task->pid);

	if (ret < 0)
		return log_error(ret, "process %d: cannot start its queues", task->pid);
	ret = kfd_resume(task->pid);
	if (ret < 0)
		return ret;
	log_info("process %d: resumed", task->pid);
	session->shared->totals.processes++;
	return 0;
}

/* Each step ends for all tasks before the next one begins, so no queue starts before all tasks are
 * complete. */
static int resume_all(struct resume *resume, unsigned int count)
{
	static int (*const steps[])(struct restore_session * session,
				    const struct gpu_task *task) = {
		check_phase, await_contents, check_lazy_memory, check_user_memory, start_queues,
	};
	int ret = bind_tasks(resume);

	if (!ret)
		ret = list_gpu_tasks(resume, count);
	for (size_t step = 0; !ret && step < ARRAY_SIZE(steps); step++) {
		for (size_t i = 0; !ret && i < resume->num_gpu_tasks; i++)
			ret = steps[step](resume->session, &resume->gpu_tasks[i]);
	}
	return ret < 0 ? ret : unbind_tasks(resume);
}

static void log_killed(pid_t root, int listed, int ended)
{
	if (listed < 0)
		log_warn(
			"restore: only process %d is killed, because the others cannot be listed: %s",
			root, strerror(-listed));
	else if (!ended)
		log_warn(
			"restore: all tasks are killed, because not all of their GPU state is restored");
	if (ended < 0)
		log_warn(
			"restore: tasks have not ended 10 seconds after SIGKILL; CRIU may wait for them until what blocks them (see the kernel's log) is over");
}

/* CRIU before 4.3 ignores the result of this hook, and lets the root of the tree run first. If the
 * root is dead, CRIU fails there. The queues of the other tasks end with the tasks. */
static int kill_all(struct resume *resume, pid_t pid, int ret)
{
	/* What failed may have been the list, for want of descriptors or memory that are free
	 * again. */
	int listed = resume->tasks.count ? 0 : proc_list_tracees(&resume->tasks);

	/* CRIU calls this hook for the root first. */
	if (!pid_list_has(&resume->tasks, pid))
		(void)pid_list_add(&resume->tasks, pid);
	log_killed(pid, listed, reap_kill(&resume->tasks));
	return host_errno(ret);
}

static int first_call(struct restore_session *session, pid_t pid)
{
	_cleanup_(resume_done) struct resume resume = { .session = session };
	unsigned int count = session->shared->num_tasks;
	int ret = count ? resume_all(&resume, count) : 0;
	if (ret < 0)
		return kill_all(&resume, pid, ret);
	guard_end(&session->guard);
	if (!count)
		return 0;
	/* Without `criu restore -d`, CRIU lives as long as the job. */
	host_empty_store(host_find_store());
	content_totals_log(&session->shared->totals, false, session->options->content.checksum);
	return 0;
}

int resume_task(struct restore_session *session, pid_t pid)
{
	struct resumed *resumed = &session->resumed;

	handoff_stop_listening(session->handoff);
	if (!session->shared)
		return -ENOTSUP;
	if (!resumed->called)
		resumed->ret = first_call(session, pid);
	resumed->called = true;
	if (resumed->ret < 0)
		return resumed->ret;
	return pid_list_has(&resumed->processes, pid) ? 0 : -ENOTSUP;
}

int resume_finish(const struct restore_session *session)
{
	if (!session->guard.pid || !__atomic_load_n(&session->shared->registered, __ATOMIC_ACQUIRE))
		return 0;
	return log_error(
		-EIO,
		"restore: CRIU has not asked for the queues of any process; the guard kills all tasks");
}
