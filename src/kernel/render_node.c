// SPDX-License-Identifier: GPL-2.0-only
/* Recognises render nodes by their device numbers, and opens them. */
#include "kernel/render_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_util.h"

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

dev_t render_node_device(uint32_t number)
{
	return makedev(DRM_MAJOR_NUMBER, number);
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
	if (!S_ISCHR(stat.st_mode) || stat.st_rdev != render_node_device(number))
		return -ENXIO;
	ret = lowest_fd ? fd_move_up(&fd, lowest_fd) : 0;
	if (ret < 0)
		return ret;
	*ret_fd = take_fd(&fd);
	return 0;
}
