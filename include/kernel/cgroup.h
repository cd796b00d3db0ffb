/* SPDX-License-Identifier: GPL-2.0-only */
/* The cgroups of this process. */
#ifndef AMDGPU_PLUGIN_KERNEL_CGROUP_H
#define AMDGPU_PLUGIN_KERNEL_CGROUP_H

/* Opens the directory of this process's cgroup in the hierarchy of cgroup v1 that has @controller,
 * such as "memory", or of cgroup v2 if @controller is NULL. -ENOENT: there is no such hierarchy, or
 * no mount of it shows the cgroup. */
int cgroup_open_own(const char *controller, int *ret_fd);

#endif
