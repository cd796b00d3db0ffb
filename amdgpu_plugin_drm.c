// SPDX-License-Identifier: GPL-2.0-only
/* Render nodes: restored as an open file of their GPU. The compute VM of a process is
 * the VM of one of its render files, the compute file. KFD's RESTORE must get that very file again.
 */
#include "amdgpu_plugin_drm.h"

#include <amdgpu_drm.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image.h"
#include "image/image_validate.h"
#include "kernel/render_node.h"
#include "memory/gpu_files.h"
#include "restore/task_image.h"
#include "session/restore_session.h"

/* The driver's name as DRM_IOCTL_VERSION gives it. */
#define DRIVER_NAME "amdgpu"

/* 1, 0, or -errno: the driver does not answer. */
static int driver_is_amdgpu(int fd)
{
	char name[sizeof(DRIVER_NAME)] = "";
	struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };

	int ret = xioctl(fd, DRM_IOCTL_VERSION, &version);

	if (ret < 0)
		return ret;
	return version.name_len == strlen(DRIVER_NAME) && !strcmp(name, DRIVER_NAME);
}

int drm_is_render_node(int fd, const struct stat *stat)
{
	_cleanup_close_ int own = -1;
	uint32_t number;
	int ret;

	if (!S_ISCHR(stat->st_mode) || !render_node_is_device(stat->st_rdev, &number))
		return 0;
	if (driver_is_amdgpu(fd) > 0)
		return 1;
	/* CRIU shows mappings by O_PATH descriptors, which take no ioctl. */
	ret = render_node_open(number, 0, &own);
	if (!ret)
		ret = driver_is_amdgpu(own);
	if (ret < 0)
		return log_error(ret, "renderD%u: cannot query its DRM driver", number);
	return ret;
}

/* The saved GPU of a render node: by its minor, which images of CRIU 3.17 to 4.2 lack. Processes of
 * a dump may know one GPU by different ids. */
static const struct topology_node *find_saved(const struct restored_task *task,
					      const CriuRenderNode *image)
{
	if (image->has_drm_render_minor)
		return topology_find_minor(&task->saved, image->drm_render_minor);
	return topology_find_gpu(&task->saved, image->gpu_id);
}

/* Restores a render node of a process without KFD state: maps its GPU alone. */
static int restore_alone(struct restore_session *session, int id, const CriuRenderNode *image)
{
	_cleanup_(topology_done) struct topology saved = { 0 };
	_cleanup_(topology_done) struct topology local = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };
	int fd = -1, ret;
	char name[32];

	if (!image->device)
		return log_error(
			-EINVAL,
			"render node %d: the image says nothing of its GPU, and its process has no KFD state%s",
			id, image_is_streamed() ? " that a stream could be searched for" : "");
	ret = topology_entries_read(&image->device, 1, &saved);
	if (ret < 0)
		return log_error(ret, "render node %d: cannot read the saved topology", id);
	if (!topology_count_gpus(&saved))
		return log_error(-EINVAL, "render node %d: the device of the image is no GPU", id);
	(void)snprintf(name, sizeof(name), "render node %d", id);
	ret = task_image_map_gpus(session, name, &saved, &local, &map);
	if (ret < 0)
		return ret;
	ret = render_node_open(map.local[0]->drm_render_minor, 0, &fd);
	return ret < 0 ? log_error(ret, "render node %d: cannot open renderD%u", id,
				   map.local[0]->drm_render_minor)
		       : fd;
}

/* Whether the file must be the one that RESTORE makes the compute VM of. Where no image claims
 * that, a process's render node is taken for it: programs have but one a GPU. */
static bool is_compute_file(const struct restore_session *session, const CriuRenderNode *image,
			    const struct topology_node *saved)
{
	const struct restored_task *task = &session->task;

	if (image->has_compute_pid)
		return (pid_t)image->compute_pid == task->vpid;
	if (image_is_streamed()) {
		const KfdOwner *owner = task_image_find_owner(task, image);

		return !owner || !owner->computes_elsewhere;
	}
	return !image_set_has_compute_file(&session->images, task->vpid, saved->drm_render_minor);
}

/* CRIU opens a file that several processes have in the process with the lowest vpid. RESTORE needs
 * it in the process whose compute file it is. */
static int check_computes(int id, const CriuRenderNode *image)
{
	if (!image->has_compute_pid || (pid_t)image->compute_pid == getpid())
		return 0;
	return log_error(-EINVAL,
			 "render node %d: process %u computes through it, but process %d opens it",
			 id, image->compute_pid, getpid());
}

int drm_restore(struct restore_session *session, int id, const CriuRenderNode *image)
{
	struct restored_task *task = &session->task;
	const struct topology_node *saved;
	int fd = -1, ret;

	ret = image_validate_render(id, image);
	if (!ret)
		ret = check_computes(id, image);
	if (ret < 0)
		return ret;
	/* The image may be wrong, so count and list may disagree. */
	if (image->num_of_bos || image->n_bo_entries)
		return log_error(
			-EOPNOTSUPP,
			"render node %d: the image has GEM objects, which cannot be restored yet",
			id);
	ret = task_image_read(session, image);
	if (ret == -ENOENT)
		return restore_alone(session, id, image);
	if (ret < 0)
		return ret;
	saved = find_saved(task, image);
	if (!saved)
		return log_error(-EINVAL,
				 "render node %d: its GPU 0x%04x is not among those of the process",
				 id, image->gpu_id);

	ret = is_compute_file(session, image, saved) ? gpu_files_share(task, saved, &fd)
						     : gpu_files_open_other(task, saved, &fd);
	if (ret < 0)
		return log_error(ret, "render node %d: cannot open the node of GPU 0x%04x", id,
				 saved->gpu_id);
	log_info("render node %d: restored", id);
	return fd;
}
