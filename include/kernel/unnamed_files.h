/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared memory of files without a name: memfds and unlinked files. */
#ifndef AMDGPU_PLUGIN_KERNEL_UNNAMED_FILES_H
#define AMDGPU_PLUGIN_KERNEL_UNNAMED_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/proc.h"

/* *@ret_found: the first mapping of such a file in process @pid that the process may write and that
 * has an address of @ranges. Shared anonymous memory and System V segments do not count, although
 * the kernel shows them as unlinked files. Return: 1, 0 if the process has no such mapping, -ESRCH
 * if the process does not exist. */
int unnamed_files_find(pid_t pid, const struct proc_range *ranges, size_t count,
		       struct proc_range *ret_found);

/* *@ret_bytes: the blocks of the largest unlinked file that process @pid has such a mapping of, 0
 * if there is none. CRIU saves unlinked files only up to its --ghost-limit. It has no limit for
 * memfds, so these are left out. -ESRCH: the process does not exist. */
int unnamed_files_largest(pid_t pid, uint64_t *ret_bytes);

#endif
