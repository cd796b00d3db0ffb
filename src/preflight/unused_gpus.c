// SPDX-License-Identifier: GPL-2.0-only
/* Finds the GPUs that no process of a dump uses. */
#include "preflight/unused_gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd_priv.h"
#include "preflight/bo_index.h"
#include "session/dump_session.h"

void unused_gpus_warn(const struct topology *topology, const struct gpu_use *uses)
{
	uint32_t first = 0;
	size_t count = 0;
	bool uses_some = false;
	char more[40] = "";

	for (size_t i = 0; i < topology->num_nodes; i++) {
		uses_some |= uses[i].is_used;
		if (uses[i].is_seen && !uses[i].is_used && !count++)
			first = topology->nodes[i].gpu_id;
	}
	if (!count || !uses_some)
		return;
	if (count > 1)
		(void)snprintf(more, sizeof(more), " (like %zu more)", count - 1);
	log_warn(
		"GPU 0x%04x%s: the job sees it and does not use it, but needs it again at each restore; start the job with the GPUs that it uses only (device cgroup, podman --device)",
		first, more);
}

/* The element of the GPU that the process knows as @user_gpu_id. */
static struct gpu_use *use_of(const struct dumped_process *process, struct gpu_use *uses,
			      uint32_t user_gpu_id)
{
	return &uses[bo_index_gpu_of(process, user_gpu_id) - process->session->topology.nodes];
}

static void note_queues(const struct dumped_process *process, struct gpu_use *uses)
{
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t count = 0;

	/* By force, the layout may be unknown. */
	if (kfd_priv_list_queues(&process->priv, &queues, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		use_of(process, uses, queues[i].gpu_id)->is_used = true;
}

static void note_process(const struct dumped_process *process, struct gpu_use *uses)
{
	const struct kfd_state *state = &process->state;

	for (uint32_t i = 0; i < state->num_devices; i++)
		use_of(process, uses, state->devices[i].user_gpu_id)->is_seen = true;
	for (uint32_t i = 0; i < state->num_bos; i++) {
		if (!(state->bos[i].alloc_flags & KFD_BO_MMIO_REMAP))
			use_of(process, uses, state->bos[i].gpu_id)->is_used = true;
	}
	note_queues(process, uses);
}

int unused_gpus_check(const struct dump_session *session)
{
	_cleanup_free_ struct gpu_use *uses =
		calloc(session->topology.num_nodes + 1, sizeof(*uses));

	if (!uses)
		return log_error(-ENOMEM, "dump: cannot list the GPUs that it uses");
	for (size_t i = 0; i < session->num_processes; i++)
		note_process(&session->processes[i], uses);
	unused_gpus_warn(&session->topology, uses);
	return 0;
}
