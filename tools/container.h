/* SPDX-License-Identifier: GPL-2.0-only */
/* Asks podman and docker for the process of a container. */
#ifndef AMDGPU_PLUGIN_TOOLS_CONTAINER_H
#define AMDGPU_PLUGIN_TOOLS_CONTAINER_H

#include <sys/types.h>

/* The first process of container @name, which is its name or id. -EINVAL: no container has such a
 * name. -ENOENT: neither program is there. -ESRCH: no program knows the container. -ENOTCONN: it
 * does not run. Logs nothing. */
int container_find_pid(const char *name, pid_t *ret_pid);

#endif
