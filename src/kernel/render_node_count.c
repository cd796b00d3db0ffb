// SPDX-License-Identifier: GPL-2.0-only
/* Counts the GEM objects of an open render node. */
#include <amdgpu_drm.h>
#include <errno.h>

#include "amdgpu_plugin_util.h"
#include "kernel/render_node.h"

/* The kernel gives out the lowest free GEM handle, from 1 on. So a file without one of the first
 * handles has, for all practical purposes, no GEM object. Only for kernels before 6.18, which list
 * no handles. */
#define HANDLES_PROBED 4096

/* Since 6.18; not in the headers of older systems. */
struct gem_list_handles {
	/* cppcheck-suppress unusedStructMember ; in the kernel's order */
	uint64_t entries;
	uint32_t num_entries;
	/* cppcheck-suppress unusedStructMember ; the same */
	uint32_t padding;
};
#define IOCTL_GEM_LIST_HANDLES DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct gem_list_handles)

int render_node_count_objects(int fd, uint32_t *ret_count)
{
	struct gem_list_handles list = { 0 };
	struct drm_amdgpu_gem_create_in info;
	int ret;

	ret = xioctl(fd, IOCTL_GEM_LIST_HANDLES, &list);
	*ret_count = list.num_entries;
	if (ret != -EINVAL)
		return ret;
	for (uint32_t handle = 1; handle <= HANDLES_PROBED; handle++) {
		struct drm_amdgpu_gem_op op = {
			.handle = handle,
			.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
			.value = (uintptr_t)&info,
		};

		ret = xioctl(fd, DRM_IOCTL_AMDGPU_GEM_OP, &op);
		if (ret == -ENOENT)
			continue;
		*ret_count = 1;
		return 0;
	}
	*ret_count = 0;
	return 0;
}
