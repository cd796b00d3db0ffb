// SPDX-License-Identifier: GPL-2.0-only
/* Opens each GPU's render node once for RESTORE and mappings, keeps it as long as something may ask
 * for it, and gives it to the task where it is one of the task's own files. */
#include "restore/gpu_files.h"

#include <errno.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "image/image.h"
#include "kernel/render_node.h"
#include "restore/mappings.h"

const struct topology_node *gpu_files_local(const struct restored_task *task,
					    const struct topology_node *saved)
{
	return task->map.local[saved - task->saved.nodes];
}

int gpu_files_lowest_fd(const struct restored_task *task)
{
	return host_unused_fd(task->vpid);
}

int gpu_files_compute(struct restored_task *task, const struct topology_node *saved, int *ret_fd)
{
	int fd = mappings_find_file(task->mappings, saved->drm_render_minor);
	int lowest, ret;

	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	lowest = gpu_files_lowest_fd(task);
	ret = lowest < 0 ? lowest
			 : render_node_open(gpu_files_local(task, saved)->drm_render_minor, lowest,
					    &fd);
	if (!ret)
		ret = mappings_add_file(task->mappings, saved->drm_render_minor, fd);
	if (!ret)
		*ret_fd = fd;
	return ret;
}

bool gpu_files_are_unmapped(const struct restored_task *task)
{
	return task->mappings->num_left == 0;
}

int gpu_files_share(struct restored_task *task, const struct topology_node *saved, int *ret_fd)
{
	int fd = -1;
	int ret = gpu_files_compute(task, saved, &fd);

	if (ret < 0)
		return ret;
	if (gpu_files_are_unmapped(task) && task->rebuilt) {
		*ret_fd = mappings_take_file(task->mappings, saved->drm_render_minor);
		return 0;
	}
	fd = fd_dup_above(fd, gpu_files_lowest_fd(task));
	if (fd < 0)
		return fd;
	mappings_note_shared(task->mappings, saved->drm_render_minor);
	*ret_fd = fd;
	return 0;
}

/* Whether a render node of the task that is still to come may be the GPU's compute file. 1, 0, or
 * -errno after a line. Streams cannot be looked through. */
static int may_be_asked_for(const struct restored_task *task, const struct topology_node *saved)
{
	int ret;

	if (mappings_is_shared(task->mappings, saved->drm_render_minor))
		return 0;
	if (image_is_streamed())
		return 1;
	ret = image_dir_expect_render(task->vpid, saved->drm_render_minor);
	return ret < 0 && ret != -ENOENT ? ret : !ret;
}

int gpu_files_close_unneeded(struct restored_task *task)
{
	for (size_t i = 0; gpu_files_are_unmapped(task) && i < task->saved.num_nodes; i++) {
		const struct topology_node *saved = &task->saved.nodes[i];
		int fd, ret;

		ret = saved->gpu_id ? may_be_asked_for(task, saved) : 1;
		if (ret < 0)
			return ret;
		fd = ret ? -1 : mappings_take_file(task->mappings, saved->drm_render_minor);
		fd_close(&fd);
	}
	return 0;
}

int gpu_files_open_other(const struct restored_task *task, const struct topology_node *saved,
			 int *ret_fd)
{
	return render_node_open(gpu_files_local(task, saved)->drm_render_minor,
				gpu_files_lowest_fd(task), ret_fd);
}
