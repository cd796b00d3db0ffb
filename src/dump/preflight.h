/* SPDX-License-Identifier: GPL-2.0-only */
/* What a kernel, a GPU or this plugin would save or restore wrongly, found out at the dump, before
 * anything is copied: each with its reason and its remedy in one line. The kernel is asked what it
 * can do or has done, not for its version. The README lists what is refused. */
#ifndef AMDGPU_PLUGIN_DUMP_PREFLIGHT_H
#define AMDGPU_PLUGIN_DUMP_PREFLIGHT_H

#include "dump/dump.h"
#include "kernel/kfd_criu.h"

struct kfd_state;

/* When CRIU shows the first thing of an AMD GPU: refuses dumps in which a process's memory would be
 * of another moment than its GPUs'. -EOPNOTSUPP after a line; with @force 0, after a warning. */
int preflight_check_dump(bool force);

/* Before a process is paused: whether the driver can take running waves off the GPU. Without
 * that a pause waits for them to end, or resets the GPU. -EOPNOTSUPP after a line; with @force
 * 0, after a warning. */
int preflight_check_driver(int kfd_id, bool force);

/* What the driver means by @error (-errno) of @op; NULL: no more than the error's own words. */
const char *preflight_explain(enum kfd_criu_op op, int error);

/* A process that is paused, as CHECKPOINT has told it. */
struct preflight_subject {
	const struct dump_session *session;
	/* In the session, with its places, as are those that were dumped before it. */
	const struct dumped_process *process;
	const struct kfd_state *state;
	const struct topology *topology;
};

/* Queues that would not run again or run wrongly, buffers that would come back as something else.
 * -EOPNOTSUPP after a line. AMDGPU_FORCE makes that a warning, but not where the result could not
 * be restored at all. The GPUs of all BOs must be in the topology. */
int preflight_check(const struct preflight_subject *subject);

#endif
