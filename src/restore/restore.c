// SPDX-License-Identifier: GPL-2.0-only
/* Rebuilds KFD state in the task that owns it. task_image.c finds the task's image, and resume.c
 * starts the queues when CRIU has restored all memory. */
#include "restore/restore.h"

#include <errno.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "devices/extra_gpus.h"
#include "devices/node.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "image/image_priv.h"
#include "kernel/hsakmt_shm.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "memory/gpu_files.h"
#include "memory/mappings.h"
#include "memory/restore_shared.h"
#include "memory/user_memory.h"
#include "memory/vram.h"
#include "restore/gpu_ids.h"
#include "restore/handoff.h"
#include "restore/queue_check.h"
#include "restore/restore_contents.h"
#include "restore/restore_guard.h"
#include "restore/task_image.h"
#include "session/restore_session.h"
#include "sharing/gem_handles.h"
#include "sharing/imports.h"
#include "sharing/share_handles.h"

/* The restore of one KFD state. */
struct restore {
	struct restore_session *session;
	struct restored_task *task;
	/* The task's new /dev/kfd. */
	int fd;
	struct kfd_state state;
	enum gpu_ids_mmap mmap_ids;
};

static int start_guard(struct restore_session *session)
{
	int ret;

	/* The inventory need not name the plugin: CRIU's own plugin adds itself only for device
	 * mappings, and older versions of CRIU have no list of plugins. */
	if (!session->needed && host_has_inventory() && !image_dir_has_any())
		return 0;
	if (access(KFD_PATH, F_OK) < 0 && errno == ENOENT)
		return 0;
	ret = restore_guard_start(session);
	return ret < 0 ? log_error(ret, "restore: cannot start a guard for the tasks") : 0;
}

int restore_init(struct restore_session *session)
{
	int ret = restore_shared_new(&session->shared);

	node_note_machine(&session->machine_dev);
	session->pid_namespace = proc_pid_namespace();
	/* The mapper prefers GPUs that are not in use. It can do without. */
	if (gpu_use_read(&session->used_gpus) < 0)
		log_debug("restore: the list of GPUs in use is incomplete");
	if (ret < 0)
		return log_error(ret, "restore: cannot share memory with the tasks");
	session->task.mappings.files = &session->task.files;
	ret = start_guard(session);
	/* A stream is sequential, so each task reads its own image, and loads its own contents. */
	if (ret < 0 || !session->needed || image_is_streamed())
		return ret;
	/* If an image cannot be read, a task that maps GPUs fails. */
	(void)task_image_read_tree(session);
	if (!session->options->parallel_restore || !host_has_hook(HOOK_POST_FORKING))
		return 0;
	ret = handoff_new(&session->options->content, &session->shared->totals, &session->handoff);
	return ret < 0 ? log_error(ret, "restore: cannot make a socket for the tasks") : 0;
}

void restore_done(struct restore_session *session)
{
	struct restored_task *task = &session->task;

	guard_end(&session->guard);
	map_tree_done(&session->tree);
	image_set_done(&session->images);
	gpu_use_done(&session->used_gpus);
	session->tree_is_read = false;
	restore_shared_free(session->shared);
	session->shared = NULL;
	handoff_free(session->handoff);
	session->handoff = NULL;
	pid_list_done(&session->resumed.processes);
	session->resumed = (struct resumed){ 0 };
	mappings_done(&task->mappings);
	gpu_files_close(&task->files, -1);
	task_image_forget(task);
	*task = (struct restored_task){ 0 };
}

static int restore_hsakmt_shm(const CriuKfd *kfd)
{
	const struct hsakmt_shm shared = {
		.size = kfd->shared_mem_size,
		.magic = kfd->shared_mem_magic,
		.mode = kfd->shared_mem_mode,
		.semaphore_mode = kfd->semaphore_mode,
	};

	return hsakmt_shm_restore(&shared);
}

/* Mappings need /dev/kfd. Later, dma-bufs take the descriptors up to the limit. */
static int keep_kfd(struct restore *restore)
{
	struct restored_task *task = restore->task;
	int fd, ret;

	if (!mappings_pending(&task->mappings))
		return 0;
	fd = fd_dup_above(restore->fd, host_unused_fd(task->vpid));
	ret = fd < 0 ? fd : gpu_files_add(&task->files, 0, fd);
	return ret < 0 ? log_error(ret, "kfd %d: cannot store its descriptor", task->kfd_id) : 0;
}

static int alloc_state(struct restore *restore)
{
	const struct restored_task *task = restore->task;
	const struct kfd_priv priv = image_priv_in(task->kfd, &task->layout);
	uint32_t num_extra = (uint32_t)task->map.num_extra;
	struct kfd_state *state = &restore->state;
	int ret;

	state->num_devices = task->kfd->num_of_gpus + num_extra;
	state->num_bos = (uint32_t)task->kfd->n_bo_entries;
	state->num_objects = task->kfd->num_of_objects;
	state->priv_data_size = kfd_priv_size_with(&priv, num_extra);
	ret = kfd_state_alloc(state);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot restore", task->kfd_id);
	kfd_priv_copy_with(&priv, num_extra, state->priv_data);
	state->num_devices = task->kfd->num_of_gpus;
	return 0;
}

static int fill_in_devices(struct restore *restore)
{
	struct restored_task *task = restore->task;
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
		restore->state.devices[count++] = (struct kfd_device_bucket){
			.user_gpu_id = saved->gpu_id,
			.actual_gpu_id = gpu_files_local(task, saved)->gpu_id,
			.drm_fd = (uint32_t)fd,
		};
	}
	return 0;
}

static void fill_in_bos(struct restore *restore)
{
	for (uint32_t i = 0; i < restore->state.num_bos; i++) {
		const KfdBoEntry *entry = restore->task->kfd->bo_entries[i];

		restore->state.bos[i] = (struct kfd_bo_bucket){
			.addr = entry->addr,
			.size = entry->size,
			.offset = entry->offset,
			.gpu_id = entry->gpu_id,
			.alloc_flags = entry->alloc_flags,
			.dmabuf_fd = KFD_INVALID_FD,
		};
	}
}

/* The driver keeps the render nodes of extra GPUs open itself. check_ids() still needs their ids.
 */
static void close_extra_gpus(struct restore *restore)
{
	struct kfd_state *state = &restore->state;

	while (state->num_devices > restore->task->kfd->num_of_gpus)
		(void)close((int)state->devices[--state->num_devices].drm_fd);
}

static int report_refusal(const struct restore *restore, int ret)
{
	const struct kfd_state *state = &restore->state;
	const char *meaning = kfd_explain(KFD_RESTORE, ret);

	return log_error(ret,
			 "kfd %d: the kernel cannot rebuild %u BOs and %u objects of %u GPUs%s%s",
			 restore->task->kfd_id, state->num_bos, state->num_objects,
			 state->num_devices, meaning ? ": " : "", meaning ? meaning : "");
}

static int rebuild(struct restore *restore)
{
	struct restored_task *task = restore->task;
	struct kfd_state *state = &restore->state;
	int ret;

	ret = extra_gpus_add(&task->map, host_unused_fd(task->vpid), state);
	if (!ret) {
		vram_await(restore->session->shared, task, restore->fd, state);
		ret = kfd_restore(restore->fd, state, host_unused_fd(task->vpid));
		vram_end_claim(restore->session->shared, task, state);
		task->rebuilt = true;
		if (ret < 0)
			(void)report_refusal(restore, ret);
	}
	close_extra_gpus(restore);
	return ret;
}

static int check_ids(struct restore *restore)
{
	struct restored_task *task = restore->task;
	struct kfd_state all = restore->state;
	int ret;

	all.num_devices += (uint32_t)task->map.num_extra;
	ret = gpu_ids_probe(restore->fd, &all, &restore->mmap_ids);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot ask the driver which gpu_ids it maps by",
				 task->kfd_id);
	return gpu_ids_check(task, restore->mmap_ids, restore->session->options->force);
}

static int add_mapped_bo(const struct restore *restore, const struct kfd_bo_bucket *bo)
{
	struct restored_task *task = restore->task;
	struct mapped_bo mapped = {
		.addr = bo->addr,
		.size = bo->size,
		.old_offset = bo->offset,
		.new_offset = bo->restored_offset,
	};

	if (bo->alloc_flags & KFD_BO_USERPTR)
		return 0;
	if (bo->alloc_flags & KFD_BO_WITH_CONTENTS)
		mapped.saved_minor = topology_find_gpu(&task->saved, bo->gpu_id)->drm_render_minor;
	else if (restore->mmap_ids == MMAP_USER_IDS)
		mapped.new_offset = kfd_mmap_offset_of(bo->restored_offset, bo->gpu_id);
	return mappings_add_bo(&task->mappings, &mapped);
}

static int add_mapped_gpu(const struct restore *restore, const struct topology_node *saved)
{
	struct restored_task *task = restore->task;
	const struct mapped_gpu gpu = {
		.old_id = saved->actual_gpu_id,
		.user_id = saved->gpu_id,
		.new_id = restore->mmap_ids == MMAP_USER_IDS ? saved->gpu_id
							     : gpu_files_local(task, saved)->gpu_id,
	};

	return mappings_add_gpu(&task->mappings, &gpu);
}

/* Prepares the answers to UPDATE_VMA_MAP. */
static int note_mappings(struct restore *restore)
{
	struct restored_task *task = restore->task;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < restore->state.num_bos; i++)
		ret = add_mapped_bo(restore, &restore->state.bos[i]);
	for (size_t i = 0; !ret && i < task->saved.num_nodes; i++) {
		const struct topology_node *saved = &task->saved.nodes[i];

		if (saved->gpu_id)
			ret = add_mapped_gpu(restore, saved);
	}
	return ret < 0 ? log_error(ret, "kfd %d: cannot record its mappings", task->kfd_id) : 0;
}

static int check_queues(struct restore *restore)
{
	uint32_t kfd_minor;
	int ret = kfd_read_minor(restore->fd, &kfd_minor);

	return ret < 0 ? ret
		       : queue_check_task(restore->task, kfd_minor,
					  restore->session->options->force);
}

/* What a restore can refuse, and what it needs, before the task has KFD state. */
static int prepare(struct restore *restore)
{
	struct restore_session *session = restore->session;
	int ret = restore_contents_check(restore->task);

	if (!ret)
		ret = check_queues(restore);
	if (!ret)
		ret = restore_hsakmt_shm(restore->task->kfd);
	if (!ret)
		ret = keep_kfd(restore);
	if (!ret)
		ret = share_handles_await(session, restore->fd);
	if (!ret)
		ret = alloc_state(restore);
	if (!ret)
		fill_in_bos(restore);
	return ret;
}

/* What the driver's RESTORE leaves to the plugin. */
static int complete(struct restore *restore)
{
	struct restore_session *session = restore->session;
	const struct kfd_priv priv = image_priv_in(restore->task->kfd, &restore->task->layout);
	int ret = check_ids(restore);

	if (!ret)
		ret = note_mappings(restore);
	if (!ret)
		ret = imports_restore(session, restore->fd, &restore->state);
	if (!ret)
		ret = gem_handles_restore(session, &restore->state);
	if (!ret)
		ret = user_memory_note(session, &priv, &restore->state);
	if (ret < 0)
		return ret;
	gpu_files_close_unneeded(session);
	return restore_contents_load(session, &restore->state);
}

static int restore_kfd_state(struct restore_session *session, int fd)
{
	struct restore restore = { .session = session, .task = &session->task, .fd = fd };
	int ret = prepare(&restore);

	/* From here on the task has KFD state, and must not run unfinished. If a later step fails,
	 * resume_task() kills all tasks. */
	if (!ret) {
		restore_shared_set_phase(session->shared, session->task.vpid, PHASE_IN_PROGRESS);
		ret = restore_guard_register(session);
	}
	if (!ret)
		ret = fill_in_devices(&restore);
	if (!ret)
		ret = rebuild(&restore);
	if (!ret)
		ret = complete(&restore);
	if (!ret)
		log_info("kfd %d: restored process %d: %u GPUs, %u BOs, %u objects",
			 session->task.kfd_id, session->task.vpid, restore.state.num_devices,
			 restore.state.num_bos, restore.state.num_objects);
	kfd_state_done(&restore.state);
	return ret;
}

static int open_hiding(struct restored_task *task, int *ret_fd)
{
	struct hide hide;
	int ret = extra_gpus_hide(task, &hide);

	if (ret < 0)
		return ret;
	ret = kfd_open(ret_fd);
	hide_end(&hide);
	task->kfd_opened |= !ret;
	return ret;
}

static int open_kfd(struct restore_session *session, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	int lowest = host_unused_fd(session->task.vpid);
	int ret;

	if (lowest < 0)
		return log_error(lowest, "%s: no descriptor is free", KFD_PATH);
	ret = node_make_kfd(&session->machine_dev);
	if (!ret)
		ret = open_hiding(&session->task, &fd);
	if (ret < 0)
		return ret;
	ret = fd_move_up(&fd, lowest);
	if (ret < 0)
		return log_error(ret, "%s: cannot move its descriptor", KFD_PATH);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Another task must not restore the state, as its owner would lack it. A task has one state. */
static int check_owner(const struct restored_task *task, int id, const CriuKfd *image)
{
	if ((pid_t)image->pid != task->vpid)
		return log_error(-EINVAL, "kfd %d belongs to process %u, but process %d opens it",
				 id, image->pid, task->vpid);
	if (task->kfd && task->kfd_id != id)
		return log_error(-EINVAL, "kfd %d: is not the image of process %d, kfd %d is", id,
				 task->vpid, task->kfd_id);
	return 0;
}

/* A file without state, beside which the process may have another file with state. The first open
 * decides which GPUs the process has, so the state comes first. A stream cannot be searched. */
static int prepare_other(struct restore_session *session)
{
	int ret = image_is_streamed() ? -ENOENT : task_image_read(session, NULL);

	return ret == -ENOENT ? 0 : ret;
}

/* Takes over *@image, if the task does not have it already. */
static int prepare_state(struct restore_session *session, int id, CriuKfd **image)
{
	struct restored_task *task = &session->task;
	int ret = check_owner(task, id, *image ? *image : task->kfd);

	if (ret < 0)
		return ret;
	if (*image)
		task->kfd = take_ptr(image);
	task->kfd_id = id;
	return task_image_prepare(session);
}

/* *@image is NULL if the task has kept the image. Otherwise the task takes it over if it has KFD
 * state. */
static int restore_file(struct restore_session *session, int id, CriuKfd **image)
{
	const CriuKfd *kfd = *image ? *image : session->task.kfd;
	bool has_state = kfd->num_of_gpus > 0;
	_cleanup_close_ int fd = -1;
	int ret;

	session->task.vpid = getpid();
	ret = has_state ? prepare_state(session, id, image) : prepare_other(session);
	if (!ret)
		ret = open_kfd(session, &fd);
	if (!ret && has_state)
		ret = restore_kfd_state(session, fd);
	return ret < 0 ? ret : take_fd(&fd);
}

static void free_image(CriuKfd **image)
{
	if (*image)
		criu_kfd__free_unpacked(*image, NULL);
}

int restore_read_image(const struct restore_session *session, int id, struct state_image *ret_image)
{
	const struct restored_task *task = &session->task;

	/* CRIU's main process has logged why. */
	if (session->tree_error < 0 && session->tree_image == id)
		return session->tree_error;
	if (!task->kfd || task->kfd_id != id)
		return image_read(id, ret_image);
	*ret_image = (struct state_image){ .kind = IMAGE_KFD };
	return 0;
}

int restore_kfd(struct restore_session *session, int id, CriuKfd *kfd)
{
	_cleanup_(free_image) CriuKfd *image = kfd;
	struct restored_task *task = &session->task;
	int ret;

	if (task->has_early_fd && task->kfd_id == id) {
		task->has_early_fd = false;
		return task->early_fd;
	}
	ret = restore_file(session, id, &image);
	if (ret < 0)
		restore_shared_fail(session->shared, session->task.vpid);
	return ret;
}

int restore_update_mapping(struct restore_session *session, const char *path, uint64_t addr,
			   uint64_t old_offset, uint64_t *ret_new_offset, int *ret_fd)
{
	int ret;

	if (!session->task.mappings.files)
		return -ENOTSUP;
	ret = mappings_update(&session->task.mappings, path, addr, old_offset, ret_new_offset,
			      ret_fd);
	/* CRIU may go on with the old offset, at which this machine may have another BO. So
	 * resume_task() kills all tasks. Without files of the plugin, task.vpid may be 0 yet. */
	if (ret < 0 && ret != -ENOTSUP)
		restore_shared_set_phase(session->shared, getpid(), PHASE_IN_PROGRESS);
	return ret;
}
