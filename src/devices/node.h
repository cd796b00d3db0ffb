/* SPDX-License-Identifier: GPL-2.0-only */
/* Device nodes that a restored /dev lacks. CRIU restores the /dev of a container as it was at the
 * dump: it has no node of another GPU, and its /dev/kfd may have the major number of another boot.
 * The restored task makes such nodes in its own /dev, which is a tmpfs, and never on a file system
 * of the machine. */
#ifndef AMDGPU_PLUGIN_DEVICES_NODE_H
#define AMDGPU_PLUGIN_DEVICES_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "session/restore_session.h"

/* In CRIU's main process: notes which mount namespace and which file system is the machine's /dev.
 * If that fails, tasks make no nodes. */
void node_note_machine(struct machine_dev *ret_machine);

/* Whether the task's /dev lacks this render node, and the task may make it. */
bool node_can_make_render(const struct machine_dev *machine, uint32_t minor);

/* Make the node if the task's own /dev lacks it; node_make_kfd() also replaces a /dev/kfd with the
 * number of another device. Return 0 without a node if /dev is not the task's own: a later open()
 * fails then. Log each node made. Log on error. */
int node_make_render(const struct machine_dev *machine, uint32_t minor);
int node_make_kfd(const struct machine_dev *machine);

#endif
