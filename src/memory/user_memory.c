// SPDX-License-Identifier: GPL-2.0-only
/* Compares the memory that GPUs use with the mappings of a restored process. Only the task knows
 * the former, and its mappings are complete only when CRIU's main process starts the queues. */
#include "memory/user_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "memory/restore_shared.h"

/* Makes one range of those that touch each other. Programs register buffers piece by piece. Returns
 * the number of ranges that are left. */
static size_t merge(struct proc_range *ranges, size_t count)
{
	size_t last = 0;

	if (!count)
		return 0;
	qsort(ranges, count, sizeof(*ranges), compare_u64);
	for (size_t i = 1; i < count; i++) {
		if (ranges[i].start > ranges[last].end)
			ranges[++last] = ranges[i];
		else if (ranges[i].end > ranges[last].end)
			ranges[last].end = ranges[i].end;
	}
	return last + 1;
}

/* The queues can start without the check. */
static void note_ranges(const struct restore_session *session, const struct proc_range *ranges,
			size_t count)
{
	const struct restored_task *task = &session->task;
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++)
		ret = restore_shared_add_range(session->shared, task->vpid, ranges[i]);
	if (ret < 0)
		log_warn(
			"kfd %d: cannot check all memory that its GPUs use, because the memory of all tasks is in too many parts",
			task->kfd_id);
}

int user_memory_note(struct restore_session *session, const struct kfd_priv *priv,
		     const struct kfd_state *state)
{
	const struct restored_task *task = &session->task;
	_cleanup_free_ struct proc_range *ranges = NULL;
	size_t count = 0;
	int ret = kfd_priv_list_memory(priv, state->bos, &ranges, &count);

	if (ret == -EINVAL) {
		log_info(
			"kfd %d: the private data does not report which memory of the process its GPUs use",
			task->kfd_id);
		return 0;
	}
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list the memory that its GPUs use",
				 task->kfd_id);
	note_ranges(session, ranges, merge(ranges, count));
	return 0;
}

static int list_ranges(const struct restore_shared *shared, pid_t vpid,
		       struct proc_range **ret_ranges, size_t *ret_count)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < shared->num_ranges && i < RESTORE_SHARED_RANGES; i++) {
		if (shared->ranges[i].vpid == vpid)
			ret = array_append(ret_ranges, ret_count, sizeof(**ret_ranges),
					   &shared->ranges[i].range);
	}
	return ret;
}

int user_memory_check(const struct restore_session *session, pid_t pid, pid_t vpid)
{
	_cleanup_free_ struct proc_range *ranges = NULL;
	struct proc_range missing;
	size_t count = 0;
	int ret = list_ranges(session->shared, vpid, &ranges, &count);

	if (!ret && count)
		ret = proc_find_unmapped(pid, ranges, count, &missing);
	if (ret < 0)
		return log_error(
			ret,
			"process %d: cannot determine whether it has the memory that its GPUs use",
			pid);
	if (!ret)
		return 0;
	return log_refusal(session->options->force, -EFAULT,
			   "process %d: its GPUs use memory at 0x%" PRIx64 "-0x%" PRIx64
			   ", and the restored process has no such memory",
			   pid, missing.start, missing.end);
}
