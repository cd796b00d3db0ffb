// SPDX-License-Identifier: GPL-2.0-only
/* Lists the render files of a dump, and writes their images and those of dma-bufs. gem_list.c finds
 * the compute file of a process, and shared_bos.c the BO of a dma-buf. */
#include "dump/dump_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dump_image.h"
#include "image/image.h"
#include "pause/kfd_files.h"
#include "preflight/gem_list.h"
#include "preflight/preflight.h"
#include "session/dump_session.h"
#include "sharing/object_rules.h"
#include "sharing/shared_bos.h"

/* GEM handles are those of CRIU's own plugin. */
#define NO_HANDLE UINT32_MAX

/* An open render node of the dump. */
struct dumped_render {
	/* The plugin's descriptor of the file, or -1 if no task had the file when the snapshot was
	 * taken: it is in a message that a socket holds. */
	int fd;
	const struct topology_node *node;
	/* The process that computes through the file, or NULL for any other file. */
	const struct dumped_process *compute;
	/* Of the KFD processes that have the file and see the GPU, the one with the lowest vpid, or
	 * NULL. */
	const struct dumped_process *holder;
	/* The image that is still to be written, or DUMP_NO_ID. */
	int id;
	/* The GPU's id in that image. */
	uint32_t gpu_id;
};

struct dumped_dmabuf {
	int id;
	uint32_t object;
	/* The process that makes the object. */
	const struct dumped_process *owner;
};

/* Whether @fd is the compute file of @process: 1, 0 or -errno. */
static int is_compute_file(const struct dumped_process *process, const struct dumped_gpu *gpu,
			   int fd)
{
	return gpu && gpu->compute_file != DUMP_NO_FILE
		       ? kfd_files_compare(process->pid, gpu->compute_file, fd)
		       : 0;
}

static int find_compute_process(const struct dump_session *session, int fd, const char *name,
				struct dumped_render *render)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_processes; i++) {
		const struct dumped_process *process = &session->processes[i];

		ret = is_compute_file(process, dump_find_gpu(process, render->node), fd);
		render->compute = ret > 0 ? process : NULL;
	}
	return ret < 0 ? log_error(ret, "%s: cannot determine whether it is a compute file", name)
		       : 0;
}

/* The image of the process has the handles of its compute file. */
static int check_handles(const struct dump_session *session, const struct gem_file *file,
			 const char *name, const struct dumped_process *compute)
{
	const size_t saved = compute ? dump_find_gpu(compute, file->gpu)->num_handles : 0;

	return file->num_handles == saved
		       ? 0
		       : preflight_refuse(session, DUMP_HAS_GEM_OBJECTS, "%s: renderD%u", name,
					  file->gpu->drm_render_minor);
}

/* *@ret_render: the listed file that file->fd is a descriptor of, or NULL if it is not listed.
 * @name: for the log. */
static int find_listed(const struct dump_session *session, const struct gem_file *file,
		       const char *name, struct dumped_render **ret_render)
{
	int ret = 0;

	*ret_render = NULL;
	for (size_t i = 0; !ret && i < session->num_renders; i++) {
		if (session->renders[i].node != file->gpu || session->renders[i].fd < 0)
			continue;
		ret = fd_is_same(session->renders[i].fd, file->fd);
		if (ret > 0)
			*ret_render = &session->renders[i];
	}
	return ret < 0 ? log_error(ret, "%s: cannot compare it with other files", name) : 0;
}

/* Lists the file, and refuses the dump if it has GEM objects that no image
 * has. @name: for the log. @ret_render: valid until the next call. */
static int list_file(struct dump_session *session, const struct gem_file *file, const char *name,
		     struct dumped_render **ret_render)
{
	struct dumped_render render = { .fd = -1, .node = file->gpu, .id = DUMP_NO_ID };
	int ret = find_compute_process(session, file->fd, name, &render);

	if (!ret)
		ret = check_handles(session, file, name, render.compute);
	if (ret < 0)
		return ret;
	ret = array_append(&session->renders, &session->num_renders, sizeof(render), &render);
	if (ret < 0)
		return log_error(ret, "%s: cannot list it", name);
	*ret_render = &session->renders[session->num_renders - 1];
	return 0;
}

static void note_holder(struct dumped_render *render, const struct dumped_process *process)
{
	if (process && dump_find_gpu(process, render->node) &&
	    (!render->holder || process->vpid < render->holder->vpid))
		render->holder = process;
}

/* @process: the task if it is a KFD process, or NULL. Takes descriptors out of @files. */
static int list_files(struct dump_session *session, pid_t pid, const struct dumped_process *process,
		      struct gem_files *files)
{
	struct dumped_render *render;
	char name[64];
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++) {
		struct gem_file *file = &files->list[i];

		(void)snprintf(name, sizeof(name), "process %d: descriptor %d", pid, file->number);
		ret = find_listed(session, file, name, &render);
		if (!ret && !render)
			ret = list_file(session, file, name, &render);
		if (ret < 0)
			return ret;
		note_holder(render, process);
		if (render->fd < 0)
			render->fd = take_fd(&file->fd);
	}
	return ret;
}

static int list_task(struct dump_session *session, pid_t pid)
{
	_cleanup_(gem_list_files_done) struct gem_files files = { 0 };
	int ret;

	for (size_t i = 0; i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];

		if (process->pid == pid)
			return list_files(session, pid, process, &process->gem_files);
	}
	ret = gem_list_read(pid, &session->topology, &files);
	if (ret == -ESRCH)
		return 0;
	return ret < 0 ? log_error(ret, "process %d: cannot list its render files", pid)
		       : list_files(session, pid, NULL, &files);
}

/* All dma-bufs of AMD GPUs that tasks have open must be those of BOs of the dump. */
static int check_dmabufs(const struct dump_session *session)
{
	const struct dmabuf_files *files = &session->shared->files;
	const struct dumped_process *owner;
	uint32_t object;
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++) {
		const struct dmabuf_file *file = &files->list[i];
		const struct stat stat = { .st_dev = file->device, .st_ino = file->inode };

		if (file->is_dmabuf && shared_bos_find_file(session, &stat, &object, &owner) < 0)
			ret = preflight_refuse(session, DUMP_HAS_DMABUF,
					       "process %d: descriptor %d", file->pid,
					       file->number);
	}
	return ret;
}

int dump_files_check(struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->tasks.count; i++)
		ret = list_task(session, session->tasks.pids[i]);
	return ret < 0 ? ret : check_dmabufs(session);
}

/* CRIU's own plugin finds the GPU of a render node by the id that the restored process knows. CRIU
 * opens a file that several processes have in the process with the lowest pid. Processes that were
 * restored together know the GPU by one id. */
static uint32_t choose_gpu_id(const struct dump_session *session,
			      const struct dumped_render *render)
{
	const struct dumped_process *process = render->compute ? render->compute : render->holder;
	const struct dumped_gpu *gpu = process ? dump_find_gpu(process, render->node) : NULL;
	uint32_t chosen = 0;

	if (gpu)
		return gpu->user_gpu_id;
	for (size_t i = 0; i < session->num_processes; i++) {
		gpu = dump_find_gpu(&session->processes[i], render->node);
		if (gpu && chosen && gpu->user_gpu_id != chosen)
			return render->node->gpu_id;
		if (gpu)
			chosen = gpu->user_gpu_id;
	}
	return chosen ? chosen : render->node->gpu_id;
}

/* No task had the file when the snapshot was taken. */
static int list_new_file(struct dump_session *session, struct gem_file *file, const char *name,
			 struct dumped_render **ret_render)
{
	int ret = gem_list_read_file(file);

	ret = ret < 0 ? log_error(ret, "%s: cannot list the GEM handles of renderD%u", name,
				  file->gpu->drm_render_minor)
		      : list_file(session, file, name, ret_render);
	free(file->handles);
	return ret;
}

int dump_files_add_render(struct dump_session *session, int fd, int id)
{
	struct gem_file file = { .fd = fd };
	struct dumped_render *render;
	struct stat stat;
	char name[32];
	int ret;

	(void)snprintf(name, sizeof(name), "render node %d", id);
	if (fstat(fd, &stat) < 0)
		return log_error(-errno, "%s: cannot examine", name);
	file.gpu = topology_find_minor(&session->topology, minor(stat.st_rdev));
	if (!file.gpu)
		return log_error(-ENODEV, "%s: renderD%u is not in the topology", name,
				 minor(stat.st_rdev));
	ret = find_listed(session, &file, name, &render);
	if (!ret && !render)
		ret = list_new_file(session, &file, name, &render);
	if (ret < 0)
		return ret;
	render->id = id;
	render->gpu_id = choose_gpu_id(session, render);
	return 0;
}

int dump_files_add_dmabuf(struct dump_session *session, int fd, int id)
{
	struct dumped_dmabuf dmabuf = { .id = id };
	struct stat stat;
	int ret;

	if (fstat(fd, &stat) < 0)
		return log_error(-errno, "file %d: cannot examine", id);
	if (shared_bos_find_file(session, &stat, &dmabuf.object, &dmabuf.owner) < 0)
		return preflight_refuse(session, DUMP_HAS_DMABUF, "file %d", id);
	ret = array_append(&session->dmabufs, &session->num_dmabufs, sizeof(dmabuf), &dmabuf);
	return ret < 0 ? log_error(ret, "file %d: cannot record the dma-buf", id) : 0;
}

static void note_computes_elsewhere(const struct dump_session *session,
				    const struct dumped_render *render, KfdOwner *owner)
{
	owner->has_computes_elsewhere = true;
	owner->computes_elsewhere = false;
	for (size_t i = 0; i < session->num_processes; i++) {
		const struct dumped_process *process = &session->processes[i];
		const struct dumped_gpu *gpu = dump_find_gpu(process, render->node);

		if ((uint32_t)process->id == owner->kfd_id && process != render->compute)
			owner->computes_elsewhere = gpu && gpu->compute_file != DUMP_NO_FILE;
	}
}

/* @names has the owners. */
static int write_render(const struct dump_session *session, const struct dumped_render *render,
			const CriuDmabufNode *names)
{
	CriuRenderNode image = CRIU_RENDER_NODE__INIT;
	int ret;

	image.device = topology_entry_new(&session->topology, render->node);
	if (!image.device)
		return log_error(-ENOMEM, "render node %d: cannot write the image", render->id);
	image.gpu_id = image.device->gpu_id = render->gpu_id;
	image.has_id = image.has_drm_render_minor = image.has_num_of_bos = true;
	image.id = (uint32_t)render->id;
	image.drm_render_minor = render->node->drm_render_minor;
	image.has_compute_pid = render->compute != NULL;
	image.compute_pid = render->compute ? (uint32_t)render->compute->vpid : 0;
	image.owners = names->owners;
	image.n_owners = names->n_owners;
	for (size_t i = 0; i < image.n_owners; i++)
		note_computes_elsewhere(session, render, image.owners[i]);
	ret = image_write_render(render->id, &image);
	kfd_device_entry__free_unpacked(image.device, NULL);
	if (!ret)
		log_info("render node %d: saved renderD%u of GPU 0x%04x", render->id,
			 render->node->drm_render_minor, render->gpu_id);
	return ret;
}

static int write_dmabuf(const struct dumped_dmabuf *dmabuf, CriuDmabufNode *image)
{
	int ret;

	for (size_t i = 0; i < image->n_owners; i++)
		image->owners[i]->has_computes_elsewhere = false;
	image->gem_handle = NO_HANDLE;
	image->has_object = image->has_owner_pid = true;
	image->object = dmabuf->object;
	image->owner_pid = (uint32_t)dmabuf->owner->vpid;
	ret = image_write_dmabuf(dmabuf->id, image);
	if (!ret)
		log_info("file %d: saved the dma-buf of a BO of process %d", dmabuf->id,
			 dmabuf->owner->vpid);
	return ret;
}

int dump_files_write(struct dump_session *session)
{
	CriuDmabufNode *image = dump_image_new_with_owners(session);
	int ret = image ? 0 : log_error(-ENOMEM, "dump: cannot write the images of files");

	for (size_t i = 0; !ret && i < session->num_renders; i++) {
		struct dumped_render *render = &session->renders[i];

		if (render->id != DUMP_NO_ID)
			ret = write_render(session, render, image);
		render->id = DUMP_NO_ID;
	}
	for (size_t i = 0; !ret && i < session->num_dmabufs; i++)
		ret = write_dmabuf(&session->dmabufs[i], image);
	session->num_dmabufs = 0;
	criu_dmabuf_node__free_unpacked(image, NULL);
	return ret;
}

void dump_files_done(struct dump_session *session)
{
	for (size_t i = 0; i < session->num_renders; i++)
		fd_close(&session->renders[i].fd);
	free(session->renders);
	session->renders = NULL;
	session->num_renders = 0;
}
