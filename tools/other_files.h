/* SPDX-License-Identifier: GPL-2.0-only */
/* Open files of a process that neither CRIU nor this plugin saves. */
#ifndef AMDGPU_PLUGIN_TOOLS_OTHER_FILES_H
#define AMDGPU_PLUGIN_TOOLS_OTHER_FILES_H

#include <sys/types.h>

#include "amdgpu_plugin_topology.h"

/* Warns of each such file of the process, once if several descriptors have it open. CRIU fails the
 * dump, unless another plugin saves the file. -ESRCH: there is no such process. Other errors: no
 * right, or no memory. They are not logged. */
int other_files_warn(pid_t pid, const struct topology *topology);

#endif
