// SPDX-License-Identifier: GPL-2.0-only
/* Restores KFD state in the task that owns it: map GPUs, RESTORE, contents, and the table of where
 * mappings move to. CRIU's main process resumes it when all of the task's memory is in place. */
#include "restore/restore.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/hsakmt_shm.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "restore/extra_gpus.h"
#include "restore/fill.h"
#include "restore/gpu_files.h"
#include "restore/handoff.h"
#include "restore/mappings.h"
#include "restore/restore_guard.h"
#include "restore/shared.h"

static int start_guard(struct restore_session *session)
{
	int ret;

	/* CRIU's own plugin claims only what has device mappings. */
	if (!session->needed && host_has_inventory() && !image_dir_has_any())
		return 0;
	if (access(KFD_PATH, F_OK) < 0 && errno == ENOENT)
		return 0;
	ret = restore_guard_new(&session->guard);
	return ret < 0 ? log_error(ret, "restore: cannot start a guard for the tasks") : 0;
}

int restore_init(struct restore_session *session)
{
	int ret = restore_shared_new(&session->shared);

	if (ret < 0)
		return log_error(ret, "restore: cannot share memory with the tasks");
	session->task.mappings = calloc(1, sizeof(*session->task.mappings));
	if (!session->task.mappings)
		return log_error(-ENOMEM, "restore: cannot keep a table of mappings");
	session->task.mappings->files = &session->task.files;
	ret = start_guard(session);
	if (ret < 0)
		return ret;
	if (!session->needed || !session->options->parallel_restore || !host_calls_post_forking())
		return 0;
	/* What comes in one piece after the other each task reads by itself. */
	if (image_is_streamed())
		return 0;
	ret = handoff_new(&session->options->content, &session->handoff);
	return ret < 0 ? log_error(ret, "restore: cannot be reached by the tasks") : 0;
}

static void forget_image(struct restored_task *task)
{
	map_done(&task->map);
	topology_done(&task->saved);
	topology_done(&task->local);
	if (task->kfd)
		criu_kfd__free_unpacked(task->kfd, NULL);
	task->kfd = NULL;
}

void restore_done(struct restore_session *session)
{
	struct restored_task *task = &session->task;

	restore_guard_free(session->guard);
	session->guard = NULL;
	restore_shared_free(session->shared);
	session->shared = NULL;
	handoff_free(session->handoff);
	session->handoff = NULL;
	mappings_done(task->mappings);
	free(task->mappings);
	gpu_files_close(&task->files, -1);
	forget_image(task);
	*task = (struct restored_task){ 0 };
}

static void set_phase(struct restore_session *session, enum task_phase phase)
{
	restore_shared_set_phase(session->shared, session->task.vpid, phase);
}

void restore_mark_failed(struct restore_session *session)
{
	/* It may not have come to a file of ours yet. */
	session->task.vpid = getpid();
	set_phase(session, PHASE_IN_PROGRESS);
}

static int read_topologies(struct restored_task *task)
{
	int ret = image_validate_kfd(task->kfd_id, task->kfd);

	if (ret < 0)
		return ret;
	for (size_t i = 0; !ret && i < task->kfd->n_device_entries; i++)
		ret = device_entry_read(task->kfd->device_entries[i], &task->saved);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot read the saved topology", task->kfd_id);
	ret = topology_read(TOPOLOGY_SYSFS, &task->local);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot read %s", task->kfd_id, TOPOLOGY_SYSFS);
	map_note_unreachable(&task->local, render_node_open);
	return 0;
}

static struct kfd_priv priv_of(const struct restored_task *task)
{
	return (struct kfd_priv){
		.bytes = task->kfd->priv_data.data,
		.size = task->kfd->priv_data.len,
		.num_devices = task->kfd->num_of_gpus,
		.num_bos = (uint32_t)task->kfd->n_bo_entries,
		.num_objects = task->kfd->num_of_objects,
	};
}

static int map_task(const struct restore_session *session, struct restored_task *task)
{
	const struct kfd_priv priv = priv_of(task);
	int ret;

	ret = map_decide(&task->saved, &task->local, &session->options->map, &task->map);
	if (!ret)
		ret = map_explain(&task->map);
	if (!ret)
		ret = extra_gpus_check(task->kfd_id, &task->map, &task->local, &priv);
	if (ret < 0)
		map_done(&task->map);
	return ret;
}

/* With the image in hand. */
static int prepare(struct restore_session *session)
{
	struct restored_task *task = &session->task;
	int ret;

	if (task->prepared)
		return 0;
	task->mappings->num_pending =
		task->kfd->has_num_of_mappings ? (int64_t)task->kfd->num_of_mappings : -1;
	task->mappings->host_copies = host_copies_mapping_fd();
	ret = read_topologies(task);
	if (!ret)
		ret = map_task(session, task);
	task->prepared = !ret;
	if (ret < 0)
		forget_image(task);
	return ret;
}

const KfdOwner *restore_find_owner(const struct restored_task *task, const CriuRenderNode *render)
{
	for (size_t i = 0; i < render->n_owners; i++) {
		if ((pid_t)render->owners[i]->pid == task->vpid)
			return render->owners[i];
	}
	return NULL;
}

/* A stream gives an image once, so it is kept for its own turn. */
static int find_in_stream(struct restored_task *task, const CriuRenderNode *render)
{
	const KfdOwner *owner = restore_find_owner(task, render);
	int ret;

	/* An image of an older version of ours: the file is this task's compute file, but it does
	 * not say which image has the state. Restored alone it would be another open file than the
	 * one that RESTORE is given. */
	if (!owner && render->has_compute_pid && (pid_t)render->compute_pid == task->vpid)
		return log_error(-EINVAL,
				 "render node %u: the image does not say which one has the state of"
				 " process %d, and a stream cannot be searched for it",
				 render->id, task->vpid);
	if (!owner)
		return -ENOENT;
	ret = image_read_kfd((int)owner->kfd_id, &task->kfd);
	if (ret == -ENOENT)
		return log_error(-ENODATA,
				 "kfd %u: the image of process %d is missing, or another process"
				 " has read it",
				 owner->kfd_id, task->vpid);
	task->kfd_id = (int)owner->kfd_id;
	return ret;
}

static int find_in_files(struct restored_task *task)
{
	int ret = task->has_none ? -ENOENT
				 : image_dir_find_kfd(task->vpid, &task->kfd_id, &task->kfd);

	task->has_none = ret == -ENOENT;
	return ret;
}

static int find_state(struct restored_task *task, const CriuRenderNode *render)
{
	if (task->kfd)
		return 0;
	return image_is_streamed() ? find_in_stream(task, render) : find_in_files(task);
}

int restore_prepare(struct restore_session *session, const CriuRenderNode *render)
{
	struct restored_task *task = &session->task;
	int ret;

	task->vpid = getpid();
	ret = find_state(task, render);
	if (ret < 0)
		return ret;
	ret = prepare(session);
	/* It has a state, whatever is missing here. */
	return ret == -ENOENT ? -ENODEV : ret;
}

static int fill_devices(struct restored_task *task, struct kfd_state *state)
{
	uint32_t count = 0;

	for (size_t i = 0; i < task->saved.num_nodes; i++) {
		const struct topology_node *saved = &task->saved.nodes[i];
		int fd, ret;

		if (!saved->gpu_id)
			continue;
		ret = gpu_files_compute(task, saved, &fd);
		if (ret < 0)
			return log_error(
				ret, "kfd %d: cannot open renderD%u for GPU 0x%04x", task->kfd_id,
				gpu_files_local(task, saved)->drm_render_minor, saved->gpu_id);
		state->devices[count++] = (struct kfd_device_bucket){
			.user_gpu_id = saved->gpu_id,
			.actual_gpu_id = gpu_files_local(task, saved)->gpu_id,
			.drm_fd = (uint32_t)fd,
		};
	}
	return 0;
}

static void fill_bos(const struct restored_task *task, struct kfd_state *state)
{
	for (uint32_t i = 0; i < state->num_bos; i++) {
		const KfdBoEntry *entry = task->kfd->bo_entries[i];

		state->bos[i] = (struct kfd_bo_bucket){
			.addr = entry->addr,
			.size = entry->size,
			.offset = entry->offset,
			.gpu_id = entry->gpu_id,
			.alloc_flags = entry->alloc_flags,
			.dmabuf_fd = KFD_INVALID_FD,
		};
	}
}

static int alloc_state(const struct restored_task *task, struct kfd_state *state)
{
	const struct kfd_priv priv = priv_of(task);
	uint32_t num_surplus = (uint32_t)task->map.num_extra;
	int ret;

	state->num_devices = task->kfd->num_of_gpus + num_surplus;
	state->num_bos = (uint32_t)task->kfd->n_bo_entries;
	state->num_objects = task->kfd->num_of_objects;
	state->priv_data_size = kfd_priv_size_with(&priv, num_surplus);
	ret = kfd_state_alloc(state);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot restore", task->kfd_id);
	kfd_priv_copy_with(&priv, num_surplus, state->priv_data);
	state->num_devices = task->kfd->num_of_gpus;
	return 0;
}

/* The driver keeps the render nodes of surplus GPUs, and nobody else has to do with
 * them from here on. */
static void forget_surplus(const struct restored_task *task, struct kfd_state *state)
{
	while (state->num_devices > task->kfd->num_of_gpus)
		(void)close((int)state->devices[--state->num_devices].drm_fd);
}

static int rebuild(struct restored_task *task, int fd, struct kfd_state *state)
{
	int ret;

	ret = alloc_state(task, state);
	if (!ret)
		ret = fill_devices(task, state);
	if (ret < 0)
		return ret;
	fill_bos(task, state);
	ret = extra_gpus_add(&task->map, gpu_files_lowest_fd(task), state);
	if (!ret) {
		ret = kfd_restore(fd, state, gpu_files_lowest_fd(task));
		if (ret < 0)
			(void)log_error(ret,
					"kfd %d: the kernel cannot rebuild %u BOs and %u objects of"
					" %u GPUs",
					task->kfd_id, state->num_bos, state->num_objects,
					state->num_devices);
	}
	forget_surplus(task, state);
	return ret;
}

/* Where each BO that a process may have mapped moves to. */
static int note_mappings(struct restored_task *task, const struct kfd_state *state)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];
		bool in_render = bo->alloc_flags & KFD_BO_WITH_CONTENTS;
		struct mapped_bo moved = {
			.saved_minor = in_render ? topology_find_gpu(&task->saved, bo->gpu_id)
							   ->drm_render_minor
						 : 0,
			.addr = bo->addr,
			.size = bo->size,
			.old_offset = bo->offset,
			.new_offset = bo->restored_offset,
		};

		if (!(bo->alloc_flags & KFD_BO_USERPTR))
			ret = mappings_add_bo(task->mappings, &moved);
	}
	for (size_t i = 0; !ret && i < task->saved.num_nodes; i++) {
		const struct topology_node *saved = &task->saved.nodes[i];

		if (saved->gpu_id)
			ret = mappings_add_gpu(task->mappings, saved->actual_gpu_id,
					       gpu_files_local(task, saved)->gpu_id);
	}
	return ret < 0 ? log_error(ret, "kfd %d: cannot note its mappings", task->kfd_id) : 0;
}

/* Opened before RESTORE or after it: a process has one KFD state, whatever it opens. */
static int open_kfd(const struct restored_task *task, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	int lowest = gpu_files_lowest_fd(task);
	int ret;

	if (lowest < 0)
		return log_error(lowest, "%s: no descriptor is free", KFD_PATH);
	ret = kfd_open(&fd);
	if (ret < 0)
		return ret;
	ret = fd_move_up(&fd, lowest);
	if (ret < 0)
		return log_error(ret, "%s: cannot move its descriptor", KFD_PATH);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* For mappings; before dma-bufs take the numbers up to the limit. */
static int keep_kfd(struct restored_task *task, int fd)
{
	int kept;

	if (!mappings_pending(task->mappings))
		return 0;
	kept = fd_dup_above(fd, gpu_files_lowest_fd(task));
	return kept < 0 ? kept : gpu_files_add(&task->files, 0, kept);
}

static int restore_kfd_state(struct restore_session *session, int fd)
{
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	struct restored_task *task = &session->task;
	const struct hsakmt_shm shared = {
		.size = task->kfd->shared_mem_size,
		.magic = task->kfd->shared_mem_magic,
		.mode = task->kfd->shared_mem_mode,
		.semaphore_mode = task->kfd->semaphore_mode,
	};
	int ret;

	ret = fill_check(task);
	if (!ret)
		ret = hsakmt_shm_restore(&shared);
	if (ret < 0)
		return ret;
	ret = keep_kfd(task, fd);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot keep its descriptor", task->kfd_id);
	set_phase(session, PHASE_IN_PROGRESS);
	ret = restore_guard_register(session->guard);
	if (ret < 0)
		return ret;
	ret = rebuild(task, fd, &state);
	task->rebuilt = true;
	if (!ret)
		ret = note_mappings(task, &state);
	if (!ret)
		ret = gpu_files_close_unneeded(task);
	if (!ret)
		ret = fill_contents(session, &state);
	if (ret < 0)
		return ret;

	set_phase(session, (enum task_phase)ret);
	log_info("kfd %d: restored process %d: %u GPUs, %u BOs, %u objects", task->kfd_id,
		 task->vpid, state.num_devices, state.num_bos, state.num_objects);
	return 0;
}

/* The state belongs to the task of the image; restored in another it would be lost to its own. A
 * task has one. */
static int check_owner(const struct restored_task *task, int id, const CriuKfd *image)
{
	if ((pid_t)image->pid != task->vpid)
		return log_error(-EINVAL, "kfd %d: is of process %u, but process %d opens it", id,
				 image->pid, task->vpid);
	if (task->kfd && task->kfd_id != id)
		return log_error(-EINVAL, "kfd %d: is not the image of process %d, kfd %d is", id,
				 task->vpid, task->kfd_id);
	return 0;
}

int restore_read_kfd(struct restore_session *session, int id, CriuKfd **ret_kfd)
{
	struct restored_task *task = &session->task;

	if (!task->kfd || task->kfd_id != id)
		return image_read_kfd(id, ret_kfd);
	*ret_kfd = task->kfd;
	return 0;
}

static int restore_whole(struct restore_session *session, int id, CriuKfd **image)
{
	struct restored_task *task = &session->task;
	_cleanup_close_ int fd = -1;
	int ret;

	task->vpid = getpid();
	ret = open_kfd(task, &fd);
	if (ret < 0)
		return ret;
	if (!(*image)->num_of_gpus)
		return take_fd(&fd);

	ret = check_owner(task, id, *image);
	if (ret < 0)
		return ret;
	task->kfd = take_ptr(image);
	task->kfd_id = id;
	ret = prepare(session);
	if (!ret)
		ret = restore_kfd_state(session, fd);
	return ret < 0 ? ret : take_fd(&fd);
}

int restore_kfd(struct restore_session *session, int id, CriuKfd *image)
{
	int fd = restore_whole(session, id, &image);

	/* That of the task's state is kept as long as the task restores. */
	if (image && image != session->task.kfd)
		criu_kfd__free_unpacked(image, NULL);
	return fd;
}

/* Whatever CRIU makes of this hook's result, a task that is dead cannot be let go, and so the
 * restore fails: no host takes half a process for a whole one. */
static int kill_task(int ret, int pid)
{
	(void)kill(pid, SIGKILL);
	log_warn("process %d: is killed, since not all of its GPU state is back", pid);
	return host_errno(ret);
}

int restore_resume(struct restore_session *session, int pid)
{
	pid_t vpid;
	int ret;

	handoff_stop_listening(session->handoff);
	if (!session->shared)
		return -ENOTSUP;
	ret = proc_vpid(pid, &vpid);
	if (ret == -ESRCH)
		return -ENOTSUP;
	if (ret < 0)
		return kill_task(
			log_error(ret, "process %d: cannot tell whether it has GPU state", pid),
			pid);
	switch (restore_shared_phase(session->shared, vpid)) {
	case PHASE_DONE:
		break;
	case PHASE_HANDED_OFF:
		ret = handoff_finish(session->handoff, pid);
		if (ret < 0)
			return kill_task(ret, pid);
		break;
	case PHASE_IN_PROGRESS:
		return kill_task(log_error(-EIO, "process %d: its GPU state is incomplete", pid),
				 pid);
	default:
		return -ENOTSUP;
	}
	/* Noted before: RESUME must never be called twice. */
	restore_shared_set_phase(session->shared, vpid, PHASE_RESUMED);
	ret = kfd_resume(pid);
	if (ret < 0)
		return kill_task(ret, pid);
	log_info("process %d: resumed", pid);
	restore_guard_task_done(session->guard);
	return 0;
}

int restore_update_mapping(struct restore_session *session, const char *path, uint64_t addr,
			   uint64_t old_offset, uint64_t *ret_new_offset, int *ret_fd)
{
	int ret;

	if (!session->task.mappings)
		return -ENOTSUP;
	ret = mappings_update(session->task.mappings, path, addr, old_offset, ret_new_offset,
			      ret_fd);
	/* CRIU may go on with the old offset, which could be another GPU's here. */
	if (ret < 0 && ret != -ENOTSUP)
		restore_mark_failed(session);
	return ret;
}

void restore_finish(struct restore_session *session)
{
	/* Too late to fail the restore, so nothing may be left that looks like a restored task. */
	if (restore_guard_check_done(session->guard) < 0)
		restore_guard_detach(&session->guard);
}
