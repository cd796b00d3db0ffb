// SPDX-License-Identifier: GPL-2.0-only
/* Dumps render files. gem_list.c finds the compute file of a process. */
#include "dump/render_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dump.h"
#include "dump/dump_image.h"
#include "image/image.h"
#include "kernel/render_node.h"
#include "pause/kfd_files.h"

struct dumped_render {
	int id;
	const struct topology_node *node;
	/* The GPU's id in the image. */
	uint32_t gpu_id;
	/* The process that computes through the file, or NULL for any other file. */
	const struct dumped_process *compute;
};

/* Whether @fd is the compute file of @process: 1, 0 or -errno. */
static int is_compute_file(const struct dumped_process *process, const struct dumped_gpu *gpu,
			   int fd)
{
	return gpu && gpu->compute_file != DUMP_NO_FILE
		       ? kfd_files_compare(process->pid, gpu->compute_file, fd)
		       : 0;
}

static int find_compute_process(const struct dump_session *session, int fd,
				struct dumped_render *render)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_processes; i++) {
		const struct dumped_process *process = &session->processes[i];

		ret = is_compute_file(process, dump_find_gpu(process, render->node), fd);
		render->compute = ret > 0 ? process : NULL;
	}
	return ret < 0 ? log_error(ret, "render node %d: cannot tell whether it is a compute file",
				   render->id)
		       : 0;
}

/* The image of the process has the handles of its compute file. Kernels that list no handles show
 * whether there are any. */
static int check_handles(const struct dump_session *session, int fd,
			 const struct dumped_render *render)
{
	const size_t saved =
		render->compute ? dump_find_gpu(render->compute, render->node)->num_handles : 0;
	_cleanup_free_ struct render_gem *gems = NULL;
	size_t listed = 0;
	uint32_t count = 0;
	int ret = render_node_gem_list(fd, &gems, &listed);

	if (ret == -EINVAL) {
		ret = render_node_gem_count(fd, &count);
		listed = count;
	}
	if (ret < 0)
		return log_error(ret, "render node %d: cannot list the GEM objects of renderD%u",
				 render->id, render->node->drm_render_minor);
	return listed == saved ? 0
			       : preflight_refuse(session, DUMP_HAS_GEM_OBJECTS,
						  "render node %d: renderD%u", render->id,
						  render->node->drm_render_minor);
}

/* For a GPU that processes know by different ids, as after a restored process has started another:
 * the id of the process that has the file. CRIU opens a file that several processes have in the
 * process with the lowest pid. If no KFD process has the file, this machine's id. */
static uint32_t gpu_id_of_holder(const struct dump_session *session,
				 const struct topology_node *node, int fd)
{
	const struct dumped_process *holder = NULL;

	for (size_t i = 0; i < session->num_processes; i++) {
		const struct dumped_process *process = &session->processes[i];

		if (dump_find_gpu(process, node) && kfd_files_has(process->pid, fd) > 0 &&
		    (!holder || process->vpid < holder->vpid))
			holder = process;
	}
	return holder ? dump_find_gpu(holder, node)->user_gpu_id : node->gpu_id;
}

/* CRIU's own plugin finds the GPU of a render node by the id that the restored process knows. CRIU
 * does not say which process has the file. Processes that were restored together know the GPU by
 * one id, and only if ids differ does the plugin look for the process that has the file. */
static uint32_t choose_gpu_id(const struct dump_session *session, int fd,
			      const struct dumped_render *render)
{
	uint32_t chosen = 0;

	if (render->compute)
		return dump_find_gpu(render->compute, render->node)->user_gpu_id;
	for (size_t i = 0; i < session->num_processes; i++) {
		const struct dumped_gpu *gpu = dump_find_gpu(&session->processes[i], render->node);

		if (gpu && chosen && gpu->user_gpu_id != chosen)
			return gpu_id_of_holder(session, render->node, fd);
		if (gpu)
			chosen = gpu->user_gpu_id;
	}
	return chosen ? chosen : render->node->gpu_id;
}

int render_files_dump(struct dump_session *session, int fd, int id)
{
	struct dumped_render render = { .id = id };
	struct stat stat;
	int ret;

	if (fstat(fd, &stat) < 0)
		return log_error(-errno, "render node %d: cannot examine", id);
	render.node = topology_find_minor(&session->topology, minor(stat.st_rdev));
	if (!render.node)
		return log_error(-ENODEV, "render node %d: renderD%u is not in the topology", id,
				 minor(stat.st_rdev));
	ret = find_compute_process(session, fd, &render);
	if (!ret)
		ret = check_handles(session, fd, &render);
	if (ret < 0)
		return ret;
	render.gpu_id = choose_gpu_id(session, fd, &render);
	ret = array_append(&session->renders, &session->num_renders, sizeof(render), &render);
	return ret < 0 ? log_error(ret, "render node %d: cannot note it", id) : 0;
}

static void note_computes_elsewhere(const struct dump_session *session,
				    const struct dumped_render *render, KfdOwner *owner)
{
	owner->has_computes_elsewhere = true;
	for (size_t i = 0; i < session->num_processes; i++) {
		const struct dumped_process *process = &session->processes[i];
		const struct dumped_gpu *gpu = dump_find_gpu(process, render->node);

		if ((uint32_t)process->id == owner->kfd_id && process != render->compute)
			owner->computes_elsewhere = gpu && gpu->compute_file != DUMP_NO_FILE;
	}
}

static int fill_image(const struct dump_session *session, const struct dumped_render *render,
		      CriuRenderNode *image)
{
	int ret;

	image->device = topology_entry_new(&session->topology, render->node);
	if (!image->device)
		return -ENOMEM;
	image->gpu_id = image->device->gpu_id = render->gpu_id;
	image->has_id = image->has_drm_render_minor = image->has_num_of_bos = true;
	image->id = (uint32_t)render->id;
	image->drm_render_minor = render->node->drm_render_minor;
	image->has_compute_pid = render->compute != NULL;
	image->compute_pid = render->compute ? (uint32_t)render->compute->vpid : 0;
	ret = dump_image_list_owners(session, &image->owners, &image->n_owners);
	for (size_t i = 0; !ret && i < image->n_owners; i++)
		note_computes_elsewhere(session, render, image->owners[i]);
	return ret;
}

static int write_image(const struct dump_session *session, const struct dumped_render *render)
{
	CriuRenderNode *image = malloc(sizeof(*image));
	int ret;

	if (!image)
		return log_error(-ENOMEM, "render node %d: cannot write the image", render->id);
	criu_render_node__init(image);
	ret = fill_image(session, render, image);
	ret = ret < 0 ? log_error(ret, "render node %d: cannot write the image", render->id)
		      : image_write_render(render->id, image);
	criu_render_node__free_unpacked(image, NULL);
	if (!ret)
		log_info("render node %d: saved renderD%u of GPU 0x%04x", render->id,
			 render->node->drm_render_minor, render->gpu_id);
	return ret;
}

int render_files_write(struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_renders; i++)
		ret = write_image(session, &session->renders[i]);
	session->num_renders = 0;
	return ret;
}
