/* SPDX-License-Identifier: GPL-2.0-only */
/* What /proc and sysfs say of a KFD process, where its /dev/kfd does not tell. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_KFD_PROCESS_H
#define AMDGPU_PLUGIN_PREFLIGHT_KFD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct topology;

/* Counts the AMD render nodes that process @pid uses: those that it has open, and those that it
 * maps. A process gives KFD the VM of a GPU by a file of the render node. Up to Linux 6.12 at
 * least, such a file has the PASID of the process then, and only such files count. On newer kernels
 * a render node that the process has opened for graphics counts, too. -errno: /proc cannot be read.
 */
int kfd_process_count_vms(pid_t pid, const struct topology *topology, size_t *ret_count);

/* Whether descriptor @number of process @pid is such a file, of a render node. Where the kernel
 * does not tell the PASID of the process, it may be, and the answer is true. */
bool kfd_process_has_vm_in(pid_t pid, int number);

/* Whether process @pid has more than one KFD process, which Linux 7 makes for a file of /dev/kfd on
 * request (CREATE_PROCESS): 1, 0, or -errno. */
int kfd_process_has_contexts(pid_t pid);

/* Whether process @pid was started with the environment variable @name, and its value is neither
 * empty nor 0: 1, 0 or -errno. A variable that the process has set itself is not seen. */
int kfd_process_was_started_with(pid_t pid, const char *name);

#endif
