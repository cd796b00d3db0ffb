/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's module amdgpu says of itself in sysfs, and what its parameter for XNACK allows.
 */
#ifndef AMDGPU_PLUGIN_KERNEL_AMDGPU_MODULE_H
#define AMDGPU_PLUGIN_KERNEL_AMDGPU_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "amdgpu_plugin_topology.h"

/* Whether the module has the parameter @name, with a number. */
bool amdgpu_module_parameter(const char *name, int *ret_value);
/* Whether the module has the file @name. @text takes its first line, without the end, up to @size.
 */
bool amdgpu_module_text(const char *name, char *text, size_t size);

/* The parameter noretry, as this machine has it. Without the file it is that of a driver that was
 * loaded without options. */
#define AMDGPU_NORETRY_AUTO (-1)
int amdgpu_module_read_noretry(void);
/* Whether @gpu lets no process have XNACK on, by which waves wait for pages that are not there
 * (kfd_process_xnack_mode() in kfd_process.c). A process has it on only if all its GPUs allow that.
 * RESTORE of a process that had it on otherwise fails with EPERM. @noretry: the parameter of the
 * GPU's driver. */
bool amdgpu_module_forbids_xnack(const struct topology_node *gpu, int noretry);

#endif
