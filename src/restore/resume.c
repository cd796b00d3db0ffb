// SPDX-License-Identifier: GPL-2.0-only
/* The part of CRIU's main process in a restore: it loads the contents that tasks hand over, starts
 * the queues of each task, and kills a task with incomplete GPU state. */
#include <errno.h>
#include <string.h>

#include "content/content.h"
#include "criu/host.h"
#include "criu/log.h"
#include "fill/handoff.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "memory/objects.h"
#include "memory/restore_shared.h"
#include "memory/user_memory.h"
#include "restore/reap.h"
#include "restore/restore.h"
#include "restore/restore_guard.h"

void resume_listen(struct restore_session *session)
{
	int ret = handoff_listen(session->handoff);

	if (ret < 0)
		log_warn("contents: CRIU's main process cannot start a thread that loads them: %s;"
			 " each task loads its own",
			 strerror(-ret));
	else
		restore_shared_set_handoff_ready(session->shared);
}

/* Some versions of CRIU ignore the result of this hook. If a task is dead, each version fails the
 * restore. */
static int kill_task(int ret, int pid)
{
	reap_kill(pid);
	log_warn("process %d: killed, since not all of its GPU state is restored", pid);
	return host_errno(ret);
}

/* The queues of a task may use memory whose contents other tasks restore. So none is started before
 * all contents are in place. */
static int await_others(struct restore_session *session)
{
	const struct restore_shared *shared = session->shared;
	unsigned int unfinished = restore_shared_count(shared, PHASE_IN_PROGRESS);
	unsigned int handed_off = restore_shared_count(shared, PHASE_HANDED_OFF);

	if (!objects_are_used(session->objects))
		return 0;
	if (unfinished)
		return log_error(-EIO,
				 "restore: the GPU state of %u processes is incomplete, and"
				 " others share their BOs",
				 unfinished);
	return handed_off ? handoff_finish_all(session->handoff, handed_off) : 0;
}

/* Waits until the GPU state of a task in @phase is complete. */
static int await_state(struct restore_session *session, int pid, enum task_phase phase)
{
	int ret;

	if (phase == PHASE_IN_PROGRESS)
		return log_error(-EIO, "process %d: its GPU state is incomplete", pid);
	ret = await_others(session);
	if (ret < 0)
		return ret;
	return phase == PHASE_HANDED_OFF ? handoff_finish(session->handoff, pid) : 0;
}

/* The driver takes a page that a userfaultfd has to fill for an unmapped one (hmm_range_fault()
 * gives EFAULT), and starts the queues without it: the GPU's accesses to that memory would be lost.
 */
static int check_memory(int pid)
{
	int ret = proc_has_lazy_memory(pid);

	if (ret < 0)
		return log_error(ret, "process %d: cannot tell whether its memory is complete",
				 pid);
	return ret ? log_error(
			     -EOPNOTSUPP,
			     "process %d: cannot start its queues, because memory that the GPU uses"
			     " may be missing; restore without --lazy-pages",
			     pid)
		   : 0;
}

int resume_task(struct restore_session *session, int pid)
{
	enum task_phase phase;
	pid_t vpid;
	int ret;

	handoff_stop_listening(session->handoff);
	if (!session->shared)
		return -ENOTSUP;
	ret = proc_vpid(pid, &vpid);
	if (ret == -ESRCH)
		return -ENOTSUP;
	if (ret < 0)
		return kill_task(
			log_error(ret, "process %d: cannot tell whether it has GPU state", pid),
			pid);
	phase = restore_shared_phase(session->shared, vpid);
	if (phase == PHASE_NONE || phase == PHASE_RESUMED)
		return -ENOTSUP;
	ret = await_state(session, pid, phase);
	if (ret >= 0)
		ret = check_memory(pid);
	if (ret >= 0)
		ret = user_memory_check(session, pid, vpid);
	if (ret < 0)
		return kill_task(ret, pid);
	/* Set before RESUME, so that no later call repeats it. */
	restore_shared_set_phase(session->shared, vpid, PHASE_RESUMED);
	ret = kfd_resume(pid);
	if (ret < 0)
		return kill_task(ret, pid);
	log_info("process %d: resumed", pid);
	content_totals_count_process(restore_shared_totals(session->shared));
	restore_guard_task_done(session->guard);
	return 0;
}

void resume_finish(struct restore_session *session)
{
	/* It is too late to fail the restore. The guard kills the tasks when CRIU ends. */
	if (restore_guard_check_done(session->guard) < 0)
		restore_guard_detach(&session->guard);
	else if (session->shared)
		content_totals_log(restore_shared_totals(session->shared), false,
				   session->options->content.checksum);
}
