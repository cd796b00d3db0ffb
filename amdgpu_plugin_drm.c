// SPDX-License-Identifier: GPL-2.0-only
/* Render nodes: dumped and restored as an open file of their GPU. The compute VM of a process is
 * the VM of one of its render files, the compute file. KFD's RESTORE must get that very file again.
 */
#include "amdgpu_plugin_drm.h"

#include <amdgpu_drm.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/dump.h"
#include "image/image.h"
#include "kernel/render_node.h"
#include "restore/restore.h"

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

static int refuse_handles(const struct dump_session *session, const struct dumped_render *render)
{
	return preflight_refuse(session, DUMP_HAS_GEM_OBJECTS, "render node %d: renderD%u",
				render->id, render->render_minor);
}

/* If the kernel lists the handles, they may be those in the image of a KFD process. */
static int count_handles(const struct dump_session *session, struct dumped_render *render)
{
	_cleanup_free_ struct render_gem *gems = NULL;
	uint32_t count = 0;
	int ret = render_node_gem_list(render->fd, &gems, &render->num_handles);

	if (ret == -EINVAL) {
		ret = render_node_gem_count(render->fd, &count);
		if (!ret && count)
			return refuse_handles(session, render);
	}
	return ret < 0 ? log_error(ret, "render node %d: cannot list the GEM objects of renderD%u",
				   render->id, render->render_minor)
		       : 0;
}

/* NULL: the process does not see the GPU. */
static struct dumped_gpu *find_gpu(const struct dumped_process *process, uint32_t number)
{
	for (size_t i = 0; i < process->num_gpus; i++) {
		if (process->gpus[i].render_minor == number)
			return &process->gpus[i];
	}
	return NULL;
}

static int check_handles(const struct dump_session *session, const struct dumped_render *render)
{
	const struct dumped_gpu *gpu =
		render->compute ? find_gpu(render->compute, render->render_minor) : NULL;
	size_t saved = gpu ? gpu->num_handles : 0;

	return render->num_handles == saved ? 0 : refuse_handles(session, render);
}

/* The files of several processes may have the same handle of one object. */
static bool has_handle(const struct dumped_process *process, const struct dumped_gpu *gpu, int fd)
{
	uint64_t offset = 0;

	return gpu->handle && !render_node_gem_offset(fd, gpu->handle, &offset) &&
	       offset == gpu->bo_offset && dump_process_has_file(process, fd) != 0;
}

/* Whether @fd is the compute file of @process: only that file can map the BOs of the process. Notes
 * the answer in the process. */
static bool is_compute_file_of(struct dumped_process *process, int fd, uint32_t number)
{
	struct dumped_gpu *gpu = find_gpu(process, number);
	bool found = gpu && (gpu->has_bo ? render_node_can_map(fd, gpu->bo_offset)
					 : has_handle(process, gpu, fd));

	if (found)
		gpu->found = true;
	return found;
}

static void find_compute_process(struct dump_session *session, struct dumped_render *render)
{
	for (size_t i = 0; i < session->num_processes && !render->compute; i++) {
		if (is_compute_file_of(&session->processes[i], render->fd, render->render_minor))
			render->compute = &session->processes[i];
	}
}

/* The id by which @process knows the GPU, or 0. */
static uint32_t user_gpu_id(const struct dumped_process *process, uint32_t number)
{
	const struct dumped_gpu *gpu = find_gpu(process, number);

	return gpu ? gpu->user_gpu_id : 0;
}

/* For a GPU that processes know by different ids, as after a restored process has started another:
 * the id of the process that has the file; of several, CRIU opens the file in that with the lowest
 * pid. If no KFD process has the file, this machine's id. */
static uint32_t gpu_id_of_holder(const struct dump_session *session,
				 const struct topology_node *node, int fd)
{
	const struct dumped_process *holder = NULL;

	for (size_t i = 0; i < session->num_processes; i++) {
		const struct dumped_process *process = &session->processes[i];

		if (user_gpu_id(process, node->drm_render_minor) &&
		    (!holder || process->vpid < holder->vpid) &&
		    dump_process_has_file(process, fd) > 0)
			holder = process;
	}
	return holder ? user_gpu_id(holder, node->drm_render_minor) : node->gpu_id;
}

/* CRIU's own plugin finds the GPU of a render node by the id that the restored process knows. CRIU
 * does not say which process has the file. Processes that were restored together know the GPU by
 * one id, and only if ids differ does the plugin look for the process that has the file. */
static uint32_t choose_gpu_id(const struct dump_session *session, const struct topology_node *node,
			      const struct dumped_render *render)
{
	uint32_t chosen = 0;

	if (render->compute)
		return user_gpu_id(render->compute, node->drm_render_minor);
	for (size_t i = 0; i < session->num_processes; i++) {
		uint32_t id = user_gpu_id(&session->processes[i], node->drm_render_minor);

		if (id && chosen && id != chosen)
			return gpu_id_of_holder(session, node, render->fd);
		if (id)
			chosen = id;
	}
	return chosen ? chosen : node->gpu_id;
}

static int add_owner(CriuRenderNode *image, const struct dumped_process *process)
{
	const struct dumped_gpu *gpu = find_gpu(process, image->drm_render_minor);
	KfdOwner *owner = malloc(sizeof(*owner));

	if (!owner)
		return -ENOMEM;
	kfd_owner__init(owner);
	owner->pid = (uint32_t)process->vpid;
	owner->kfd_id = (uint32_t)process->id;
	owner->has_computes_elsewhere = true;
	owner->computes_elsewhere = (pid_t)image->compute_pid != process->vpid && gpu && gpu->found;
	image->owners[image->n_owners++] = owner;
	return 0;
}

/* Processes without state were not paused and have no vpid. */
static int add_owners(CriuRenderNode *image, const struct dump_session *session)
{
	int ret = 0;

	image->owners = calloc(session->num_processes + 1, sizeof(*image->owners));
	if (!image->owners)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < session->num_processes; i++) {
		if (session->processes[i].vpid && session->processes[i].id != DUMP_NO_ID)
			ret = add_owner(image, &session->processes[i]);
	}
	return ret;
}

static int fill_image(const struct dump_session *session, const struct topology_node *node,
		      const struct dumped_render *render, uint32_t gpu_id, CriuRenderNode *image)
{
	image->device = topology_entry_new(&session->topology, node);
	if (!image->device)
		return -ENOMEM;
	image->gpu_id = image->device->gpu_id = gpu_id;
	image->has_id = image->has_drm_render_minor = image->has_num_of_bos = true;
	image->id = (uint32_t)render->id;
	image->drm_render_minor = node->drm_render_minor;
	image->has_compute_pid = render->compute != NULL;
	image->compute_pid = render->compute ? (uint32_t)render->compute->vpid : 0;
	return add_owners(image, session);
}

static int check_node(struct dump_session *session, const struct dumped_render *render)
{
	const struct topology *topology;
	int ret = dump_topology(session, &topology);

	if (ret < 0)
		return ret;
	if (!topology_find_minor(topology, render->render_minor))
		return log_error(-ENODEV, "render node %d: renderD%u is not in the topology",
				 render->id, render->render_minor);
	return 0;
}

static int write_image(const struct dump_session *session, const struct dumped_render *render)
{
	const struct topology_node *node =
		topology_find_minor(&session->topology, render->render_minor);
	const uint32_t gpu_id = choose_gpu_id(session, node, render);
	CriuRenderNode *image = malloc(sizeof(*image));
	int ret;

	if (!image)
		return log_error(-ENOMEM, "render node %d: cannot write the image", render->id);
	criu_render_node__init(image);
	ret = fill_image(session, node, render, gpu_id, image);
	ret = ret < 0 ? log_error(ret, "render node %d: cannot write the image", render->id)
		      : image_write_render(render->id, image);
	criu_render_node__free_unpacked(image, NULL);
	if (!ret)
		log_info("render node %d: saved renderD%u of GPU 0x%04x", render->id,
			 render->render_minor, gpu_id);
	return ret;
}

/* The caller keeps the descriptor of @render. */
static int keep(struct render_list *list, const struct dumped_render *render)
{
	struct dumped_render kept = *render;
	int ret;

	kept.fd = fd_dup_above(render->fd, HOST_LOWEST_FD);
	ret = kept.fd < 0 ? kept.fd
			  : array_append(&list->renders, &list->count, sizeof(kept), &kept);
	if (ret < 0)
		fd_close(&kept.fd);
	return ret < 0 ? log_error(ret, "render node %d: cannot store its descriptor", kept.id) : 0;
}

int drm_dump(struct render_list *list, struct dump_session *session, int fd, int id)
{
	struct dumped_render render = { .id = id, .fd = fd };
	struct stat stat;
	int ret;

	if (fstat(fd, &stat) < 0)
		return log_error(-errno, "render node %d: cannot examine", id);
	render.render_minor = minor(stat.st_rdev);
	ret = dump_begin(session);
	if (!ret)
		ret = count_handles(session, &render);
	if (!ret)
		ret = check_node(session, &render);
	return ret < 0 ? ret : keep(list, &render);
}

int drm_write(struct render_list *list, struct dump_session *session)
{
	int ret = 0;

	/* The image of a process's other file says that the process has a compute file. */
	for (size_t i = 0; i < list->count; i++)
		find_compute_process(session, &list->renders[i]);
	for (size_t i = 0; !ret && i < list->count; i++) {
		ret = check_handles(session, &list->renders[i]);
		if (!ret)
			ret = write_image(session, &list->renders[i]);
	}
	drm_list_done(list);
	return ret;
}

void drm_list_done(struct render_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		fd_close(&list->renders[i].fd);
	free(list->renders);
	*list = (struct render_list){ 0 };
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
		return log_error(-EINVAL,
				 "render node %d: the image says nothing of its GPU, and its"
				 " process has no KFD state%s",
				 id,
				 image_is_streamed() ? " that a stream could be searched for" : "");
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
 * that, a process's render node is taken for it: programs have but one a GPU. 1, 0, or -errno after
 * a line: another image cannot be read, which may claim it. */
static int is_compute_file(const struct restored_task *task, const CriuRenderNode *image,
			   const struct topology_node *saved)
{
	int ret;

	if (image->has_compute_pid)
		return (pid_t)image->compute_pid == task->vpid;
	if (image_is_streamed()) {
		const KfdOwner *owner = task_image_find_owner(task, image);

		return !owner || !owner->computes_elsewhere;
	}
	ret = image_dir_find_compute_render(task->vpid, saved->drm_render_minor);
	return ret == -ENOENT ? 1 : ret;
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
	int fd = -1, computes, ret;

	ret = image_validate_render(id, image);
	if (!ret)
		ret = check_computes(id, image);
	if (ret < 0)
		return ret;
	/* The image may be wrong, so count and list may disagree. */
	if (image->num_of_bos || image->n_bo_entries)
		return log_error(-EOPNOTSUPP,
				 "render node %d: the image has GEM objects, which cannot be"
				 " restored yet",
				 id);
	ret = task_image_read(session, image);
	if (ret == -ENOENT)
		return restore_alone(session, id, image);
	if (ret < 0)
		return ret;
	saved = find_saved(task, image);
	if (!saved)
		return log_error(-EINVAL,
				 "render node %d: its GPU 0x%04x is not among those of the"
				 " process",
				 id, image->gpu_id);

	computes = is_compute_file(task, image, saved);
	if (computes < 0)
		return computes;
	ret = computes ? gpu_files_share(task, saved, &fd) : gpu_files_open_other(task, saved, &fd);
	if (ret < 0)
		return log_error(ret, "render node %d: cannot open the node of GPU 0x%04x", id,
				 saved->gpu_id);
	log_info("render node %d: restored", id);
	return fd;
}
