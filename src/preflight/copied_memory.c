// SPDX-License-Identifier: GPL-2.0-only
/* Compares what GPUs may write, by the state of CHECKPOINT, with the mappings of unnamed files. */
#include "preflight/copied_memory.h"

#include <errno.h>
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd_priv.h"
#include "kernel/unnamed_files.h"
#include "preflight/preflight.h"

/* DEFAULT_GHOST_LIMIT in CRIU's cr_options.h. */
#define GHOST_LIMIT (1 << 20)

void copied_memory_warn(const struct dumped_process *process)
{
	uint64_t bytes;

	if (!unnamed_files_largest(process->pid, &bytes) && bytes > GHOST_LIMIT)
		log_warn(
			"%s: maps an unlinked file of %" PRIu64
			" bytes, which CRIU saves only with a --ghost-limit that is not less, for example 64M",
			process->name, bytes);
}

int copied_memory_check(const struct dumped_process *process)
{
	_cleanup_free_ struct proc_range *ranges = NULL;
	struct proc_range found;
	size_t count = 0;
	int ret;

	if (!process->session->stopped_late)
		return 0;
	ret = kfd_priv_list_memory(&process->priv, process->state.bos, &ranges, &count);
	/* DUMP_UNKNOWN_LAYOUT, by force. */
	if (ret == -EINVAL || ret == -ENOTUNIQ)
		return 0;
	if (!ret && count)
		ret = unnamed_files_find(process->pid, ranges, count, &found);
	if (ret < 0)
		return log_error(ret, "%s: cannot find out which files its GPUs may write",
				 process->name);
	return ret ? preflight_refuse(process->session, DUMP_MEMORY_COPIED,
				      "%s, memory at 0x%" PRIx64 "-0x%" PRIx64 ":", process->name,
				      found.start, found.end)
		   : 0;
}
