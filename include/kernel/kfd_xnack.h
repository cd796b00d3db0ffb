/* SPDX-License-Identifier: GPL-2.0-only */
/* XNACK, by which waves wait for pages that are not there. A process has it on only if all its GPUs
 * allow that. RESTORE of a process that had it on otherwise fails with EPERM. */
#ifndef AMDGPU_PLUGIN_KERNEL_KFD_XNACK_H
#define AMDGPU_PLUGIN_KERNEL_KFD_XNACK_H

#include <stdbool.h>

#include "amdgpu_plugin_topology.h"

/* amdgpu's parameter noretry, as this machine has it. Without the file it is that of a driver that
 * was loaded without options. */
#define KFD_XNACK_AUTO (-1)
int kfd_xnack_read_noretry(void);

/* Whether @gpu lets no process have XNACK on (kfd_process_xnack_mode() in kfd_process.c). @noretry:
 * the parameter of its driver. */
bool kfd_xnack_is_forbidden(const struct topology_node *gpu, int noretry);

#endif
