// SPDX-License-Identifier: GPL-2.0-only
/* Opens the render node of each GPU once, for RESTORE and for mappings, and keeps the descriptors.
 * If a render node of the task is the same open file, gpu_files_share() returns a duplicate. */
#include "memory/gpu_files.h"

#include <stdlib.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "image/image.h"
#include "kernel/render_node.h"
#include "memory/mappings.h"

struct gpu_file {
	uint32_t saved_minor;
	int fd;
	/* gpu_files_share() has given the task a descriptor of this file. */
	bool shared;
};

int gpu_files_add(struct gpu_files *files, uint32_t saved_minor, int fd)
{
	struct gpu_file file = { .saved_minor = saved_minor, .fd = fd };
	int ret = array_append(&files->files, &files->count, sizeof(file), &file);

	if (ret < 0)
		(void)close(fd);
	return ret;
}

static struct gpu_file *find_file(const struct gpu_files *files, uint32_t saved_minor)
{
	for (size_t i = 0; i < files->count; i++) {
		if (files->files[i].saved_minor == saved_minor)
			return &files->files[i];
	}
	return NULL;
}

int gpu_files_find(const struct gpu_files *files, uint32_t saved_minor)
{
	const struct gpu_file *file = find_file(files, saved_minor);

	return file ? file->fd : -1;
}

/* Removes a file from the list. Returns its descriptor, which is the caller's, or -1. */
static int take_file(struct gpu_files *files, uint32_t saved_minor)
{
	struct gpu_file *file = find_file(files, saved_minor);
	int fd = file ? file->fd : -1;

	if (file)
		*file = files->files[--files->count];
	return fd;
}

void gpu_files_close(struct gpu_files *files, int spared)
{
	for (size_t i = 0; i < files->count; i++) {
		if (files->files[i].fd != spared)
			(void)close(files->files[i].fd);
	}
	free(files->files);
	*files = (struct gpu_files){ 0 };
}

const struct topology_node *gpu_files_local(const struct restored_task *task,
					    const struct topology_node *saved)
{
	return task->map.local[saved - task->saved.nodes];
}

int gpu_files_compute(struct restored_task *task, const struct topology_node *saved, int *ret_fd)
{
	int fd = gpu_files_find(&task->files, saved->drm_render_minor);
	int ret;

	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	ret = gpu_files_open_other(task, saved, &fd);
	if (!ret)
		ret = gpu_files_add(&task->files, saved->drm_render_minor, fd);
	if (!ret)
		*ret_fd = fd;
	return ret;
}

int gpu_files_share(struct restored_task *task, const struct topology_node *saved, int *ret_fd)
{
	struct gpu_file *file;
	int fd = -1;
	int ret = gpu_files_compute(task, saved, &fd);

	if (ret < 0)
		return ret;
	/* After RESTORE and without mappings, the plugin does not need the file itself. */
	if (!mappings_pending(&task->mappings) && task->rebuilt) {
		*ret_fd = take_file(&task->files, saved->drm_render_minor);
		return 0;
	}
	fd = fd_dup_above(fd, host_unused_fd(task->vpid));
	if (fd < 0)
		return fd;
	file = find_file(&task->files, saved->drm_render_minor);
	if (file)
		file->shared = true;
	*ret_fd = fd;
	return 0;
}

/* Whether a render node that CRIU restores later may be the compute file of GPU @saved. A stream
 * cannot be searched, so there the answer is yes. */
static bool is_needed(const struct restore_session *session, const struct topology_node *saved)
{
	const struct restored_task *task = &session->task;
	const struct gpu_file *file = find_file(&task->files, saved->drm_render_minor);

	if (!file || file->shared)
		return false;
	return image_is_streamed() || image_set_may_have_compute_file(&session->images, task->vpid,
								      saved->drm_render_minor);
}

void gpu_files_close_unneeded(struct restore_session *session)
{
	struct restored_task *task = &session->task;

	for (size_t i = 0; !mappings_pending(&task->mappings) && i < task->saved.num_nodes; i++) {
		const struct topology_node *saved = &task->saved.nodes[i];
		int fd = -1;

		if (saved->gpu_id && !is_needed(session, saved))
			fd = take_file(&task->files, saved->drm_render_minor);
		fd_close(&fd);
	}
}

int gpu_files_open_other(const struct restored_task *task, const struct topology_node *saved,
			 int *ret_fd)
{
	int lowest = host_unused_fd(task->vpid);

	return lowest < 0 ? lowest
			  : render_node_open(gpu_files_local(task, saved)->drm_render_minor, lowest,
					     ret_fd);
}
