/* SPDX-License-Identifier: GPL-2.0-only */
/* What the limits of this process's cgroups leave. */
#ifndef AMDGPU_PLUGIN_KERNEL_CGROUP_ROOM_H
#define AMDGPU_PLUGIN_KERNEL_CGROUP_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* How much may still be used of what @controller limits, such as "memory": the least that this
 * process's cgroups of both versions and those above them leave. UINT64_MAX: no limit is visible.
 */
uint64_t cgroup_room_find(const char *controller);
/* Whether there is room for threads of the plugin beside all threads that the job may start. A
 * thread counts until the kernel has freed it, which may be after pthread_join(). */
bool cgroup_room_has_threads(void);

#endif
