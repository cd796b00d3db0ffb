/* SPDX-License-Identifier: GPL-2.0-only */
/* Asks the kernel whether RESTORE can rebuild the compute queues of a process. Kernels differ, and
 * a kernel that cannot do it lets the dump succeed: the job would be lost. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_QUEUE_PROBE_H
#define AMDGPU_PLUGIN_PREFLIGHT_QUEUE_PROBE_H

#include <stdbool.h>

#include "kernel/kfd_queue.h"
#include "session/dump_session.h"

/* Whether the plugin can try @queue. It does not try queues of gfx11 or newer, with which some
 * kernels crash, nor those on partitions of which kfd_queue.h warns. Of SDMA queues it tries those
 * on a GPU with several XCCs, whose saved state Linux 7.2 does not accept. */
bool queue_probe_can_ask(const struct kfd_queue *queue);

/* Restores a copy of @queue of the saved process @process in a child process, which then ends. Its
 * state is as a restore gives it to the driver (kfd_queue_repair()). Its other contents are empty:
 * one BO takes the place of each buffer of the queue, at the same address. The queue never runs,
 * because only RESUME starts queues.
 *
 * The plugin asks once a dump for each kind of queue, and repeats the answer for the others: the
 * type, whether the area for waves is in a BO, the GPU's generation and number of XCCs, and on
 * several XCCs whether the queue has waves. Takes milliseconds. 0: the kernel can rebuild the
 * queue; -EOPNOTSUPP: it refuses it; other errors: the plugin cannot ask. */
int queue_probe_ask(const struct dumped_process *process, const struct kfd_queue *queue);

#endif
