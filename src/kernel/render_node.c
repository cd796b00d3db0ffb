// SPDX-License-Identifier: GPL-2.0-only
/* Recognises render nodes by their device numbers, opens them, tries whether they can map a BO,
 * asks for the memory in use, and checks the list of names that libdrm reads when it opens one. */
#include "kernel/render_node.h"

#include <amdgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"

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

const struct topology_node *render_node_find_gpu(const struct topology *topology, dev_t device)
{
	uint32_t number;

	return render_node_is_device(device, &number) ? topology_find_minor(topology, number)
						      : NULL;
}

int render_node_find_open(const struct topology *topology, pid_t pid, int number,
			  const struct topology_node **ret_gpu)
{
	struct stat stat;
	int ret = proc_stat_fd(pid, number, &stat);

	*ret_gpu = ret > 0 && S_ISCHR(stat.st_mode) ? render_node_find_gpu(topology, stat.st_rdev)
						    : NULL;
	return ret < 0 ? ret : 0;
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
	fd = fd_open(path, O_RDWR | O_NOFOLLOW | O_NOCTTY);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISCHR(stat.st_mode) || stat.st_rdev != render_node_device(number))
		return -ENXIO;
	ret = lowest_fd ? fd_move_up(&fd, lowest_fd) : 0;
	if (ret < 0)
		return ret;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* libdrm's list has 16 KiB and grows by a few lines a year. */
#define NAMES_SIZE_MAX (1 << 20)

/* libdrm reads its list of names to the end and allocates memory for each line. A task that loads
 * its own contents sees the files of its container, where the name may lead to a pipe or to
 * /dev/zero. libdrm ignores a list that it cannot open. */
static int check_names(const char *path)
{
	struct stat names;

	if (stat(path, &names) < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	return S_ISREG(names.st_mode) && names.st_size <= NAMES_SIZE_MAX ? 0 : -EMEDIUMTYPE;
}

/* The paths in the builds of distributions, of AMD, and in local builds. */
int render_node_check_names(void)
{
	static const char *const paths[] = {
		"/usr/share/libdrm/amdgpu.ids",
		"/opt/amdgpu/share/libdrm/amdgpu.ids",
		"/usr/local/share/libdrm/amdgpu.ids",
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(paths); i++)
		ret = check_names(paths[i]);
	return ret;
}

bool render_node_can_map(int fd, uint64_t offset)
{
	void *mapping = mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, (off_t)offset);

	if (mapping == MAP_FAILED)
		return false;
	(void)munmap(mapping, 1);
	return true;
}

int render_node_find_memory(uint32_t number, struct render_memory *ret_memory)
{
	_cleanup_close_ int fd = -1;
	struct drm_amdgpu_memory_info info = { 0 };
	struct drm_amdgpu_info request = {
		.return_pointer = (uintptr_t)&info,
		.return_size = sizeof(info),
		.query = AMDGPU_INFO_MEMORY,
	};
	int ret = render_node_open(number, 0, &fd);

	if (!ret)
		ret = xioctl(fd, DRM_IOCTL_AMDGPU_INFO, &request);
	if (ret < 0)
		return ret;
	*ret_memory = (struct render_memory){
		.vram_used = info.vram.heap_usage,
		.gtt_used = info.gtt.heap_usage,
		.gtt_size = info.gtt.usable_heap_size,
	};
	return 0;
}
