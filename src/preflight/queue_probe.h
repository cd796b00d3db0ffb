/* SPDX-License-Identifier: GPL-2.0-only */
/* Asks the kernel whether RESTORE can rebuild the compute queues of a process. Kernels differ, and
 * a kernel that cannot do it lets the dump succeed: the job would be lost. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_QUEUE_PROBE_H
#define AMDGPU_PLUGIN_PREFLIGHT_QUEUE_PROBE_H

#include <stddef.h>

#include "amdgpu_plugin_topology.h"
#include "dump/dump.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"

/* The queue that tells most about the others: the first compute queue whose area for waves is in no
 * BO, else the first compute queue. NULL: there is none, or it is on a GPU of gfx11 or newer, or on
 * a partition of which kfd_queue.h warns. Some kernels crash when they restore such a queue, or
 * write over their memory, so the plugin never tries. */
const struct kfd_priv_queue *queue_probe_choose(const struct kfd_state *state,
						const struct topology *topology, uint32_t kfd_minor,
						const struct kfd_priv_queue *queues,
						size_t num_queues);

/* Restores a copy of @queue of the saved process @state in a child process, which then ends. Its
 * other contents are empty: one BO takes the place of each buffer of the queue, at the same
 * address. The queue never runs, because only RESUME starts queues.
 *
 * The kernel's answer is asked for once a dump: the later calls repeat that of an equal queue in
 * @answers. Takes milliseconds. 0: the kernel can rebuild the queue; -EOPNOTSUPP: it refuses it;
 * other errors: the plugin cannot ask. */
int queue_probe_ask(const struct kfd_state *state, const struct topology *topology,
		    const struct kfd_priv_queue *queue, struct queue_answers *answers);

#endif
