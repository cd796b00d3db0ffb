// SPDX-License-Identifier: GPL-2.0-only
/* Device files of GPUs, known by their numbers. */
#include "kernel/render_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"

#define DRM_MAJOR_NUMBER 226

bool render_node_is_device(dev_t device, uint32_t *ret_minor)
{
	unsigned int number = minor(device);

	if (major(device) != DRM_MAJOR_NUMBER || number < RENDER_NODE_MINOR_FIRST ||
	    number > RENDER_NODE_MINOR_LAST)
		return false;
	*ret_minor = number;
	return true;
}

int render_node_open(uint32_t number, int lowest_fd, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct stat stat;
	char path[64];
	int ret;

	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", number);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISCHR(stat.st_mode) || stat.st_rdev != makedev(DRM_MAJOR_NUMBER, number))
		return -ENXIO;
	ret = lowest_fd ? fd_move_up(&fd, lowest_fd) : 0;
	if (ret < 0)
		return ret;
	*ret_fd = take_fd(&fd);
	return 0;
}

void render_node_note_unreachable(struct topology *local)
{
	for (size_t i = 0; i < local->num_nodes; i++) {
		struct topology_node *node = &local->nodes[i];
		_cleanup_close_ int fd = -1;
		int ret;

		if (!node->gpu_id)
			continue;
		ret = render_node_open(node->drm_render_minor, 0, &fd);
		node->unreachable = ret < 0;
		if (ret < 0)
			log_warn("map: GPU 0x%04x stands for none: renderD%u cannot be opened: %s",
				 node->gpu_id, node->drm_render_minor, strerror(-ret));
	}
}
