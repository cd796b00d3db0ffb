/* SPDX-License-Identifier: GPL-2.0-only */
/* The cgroups of this process, and what their limits leave. */
#ifndef AMDGPU_PLUGIN_KERNEL_CGROUP_H
#define AMDGPU_PLUGIN_KERNEL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the directory of this process's cgroup in the hierarchy of cgroup v1 that has @controller,
 * such as "memory", or of cgroup v2 if @controller is NULL. Return: the descriptor, or -errno.
 * -ENOENT: there is no such hierarchy, or no mount of it shows the cgroup. */
int cgroup_open_own(const char *controller);

/* How much may still be used of what @controller limits, such as "memory": the least that this
 * process's cgroups of both versions and those above them leave. UINT64_MAX: no limit is visible.
 */
uint64_t cgroup_find_room(const char *controller);
/* Whether there is room for threads of the plugin beside all threads that the job may start. A
 * thread counts until the kernel has freed it, which may be after pthread_join(). */
bool cgroup_room_has_threads(void);
/* The memory that this process can still allocate, in bytes: MemAvailable of the machine, and no
 * more than the limits leave. -EIO: the kernel does not say. */
int cgroup_find_memory(uint64_t *ret_bytes);

#endif
