// SPDX-License-Identifier: GPL-2.0-only
/* Takes the snapshot of a dump, and applies the rules to it. preflight.c has the texts of the
 * rules, pause.c finds and pauses the processes. */
#include "dump/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/kfd_jobs.h"
#include "criu/log.h"
#include "dump/drain.h"
#include "dump/dump_files.h"
#include "dump/dump_image.h"
#include "dump/gpu_watch.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "pause/kfd_files.h"
#include "pause/pause.h"
#include "preflight/bo_index.h"
#include "preflight/gem_list.h"
#include "preflight/preflight.h"
#include "preflight/preflight_process.h"
#include "sharing/shared_bos.h"

static int stop_queues(struct dump_session *session)
{
	int ret = kfd_check_version(&session->kfd_minor);

	if (!ret)
		ret = preflight_check_driver(session);
	if (!ret)
		ret = preflight_process_check_before_pause(session);
	if (!ret)
		ret = gpu_watch_start(session);
	if (!ret)
		ret = gpu_watch_check_idle(session);
	return ret < 0 ? ret : pause_tree(session);
}

static int check_devices(const struct dumped_process *process)
{
	for (uint32_t i = 0; i < process->state.num_devices; i++) {
		const struct kfd_device_bucket *device = &process->state.devices[i];

		if (!bo_index_gpu_of(process, device->user_gpu_id))
			return log_error(-ENODEV, "%s: GPU 0x%04x is not in the topology",
					 process->name, device->actual_gpu_id);
	}
	return 0;
}

static int check_bo(const struct dumped_process *process, uint32_t index)
{
	const struct kfd_bo_bucket *bo = &process->state.bos[index];

	if (!bo_index_gpu_of(process, bo->gpu_id))
		return log_error(-EINVAL, "%s: BO %u is of GPU 0x%04x, which is not the process's",
				 process->name, index, bo->gpu_id);
	if (bo->alloc_flags & KFD_BO_WITH_CONTENTS && bo->dmabuf_fd == KFD_INVALID_FD)
		return log_error(-EINVAL, "%s: BO %u came without a dma-buf", process->name, index);
	return 0;
}

/* What the kernel says of a process must fit together. */
static int check_consistent(const struct dumped_process *process)
{
	int ret = check_devices(process);

	for (uint32_t i = 0; !ret && i < process->state.num_bos; i++)
		ret = check_bo(process, i);
	return ret;
}

static int index_bos(struct dumped_process *process)
{
	int ret = bo_index_init(process);

	return ret < 0 ? log_error(ret, "%s: cannot list its BOs", process->name) : 0;
}

static int list_mappings(struct dumped_process *process)
{
	int ret = proc_list_mappings(process->pid, &process->mappings, &process->num_mappings);

	return ret < 0 ? log_error(ret, "%s: cannot list the mappings of process %d", process->name,
				   process->vpid)
		       : 0;
}

static int list_gem_files(struct dumped_process *process)
{
	int ret = gem_list_read(process->pid, &process->session->topology, &process->gem_files);

	return ret < 0 ? log_error(ret, "%s: cannot list the GEM handles of process %d",
				   process->name, process->pid)
		       : 0;
}

static bool lacks_descriptors(int ret)
{
	return ret == -EMFILE || ret == -ENFILE;
}

/* The dma-bufs of all processes stay open until their contents are saved. If there are too many,
 * those of the processes before are closed, and opened again when it is their turn. */
static int checkpoint(struct dumped_process *process, size_t *first_open)
{
	const struct dump_session *session = process->session;
	const size_t number = (size_t)(process - session->processes);
	int ret = pause_checkpoint(process);

	if (lacks_descriptors(ret) && *first_open < number) {
		log_info("%s: too few descriptors for the dma-bufs of all processes",
			 process->name);
		while (*first_open < number)
			kfd_state_close(&session->processes[(*first_open)++].state);
		ret = pause_checkpoint(process);
	}
	process->first_open = *first_open;
	return lacks_descriptors(ret)
		       ? pause_report_refusal(process, KFD_CHECKPOINT, ret, "checkpoint")
		       : ret;
}

static int ask(struct dumped_process *process, size_t *first_open)
{
	int ret = checkpoint(process, first_open);

	if (!ret)
		ret = check_consistent(process);
	if (!ret)
		ret = index_bos(process);
	if (!ret)
		ret = list_mappings(process);
	if (!ret)
		ret = list_gem_files(process);
	return ret < 0 ? ret : shared_bos_add(process);
}

static void raise_limit(struct dump_session *session)
{
	uint64_t highest = KFD_FILES_HIGHEST_FD;

	/* While CHECKPOINT's descriptors are moved, each of them exists twice. */
	for (size_t i = 0; i < session->num_processes; i++)
		highest += 2ULL * session->processes[i].state.num_bos;
	(void)nofile_raise(highest, &session->old_limit);
}

static int ask_all(struct dump_session *session)
{
	size_t first_open = 0;
	int ret = shared_bos_begin(session);

	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = preflight_process_check(&session->processes[i]);
	raise_limit(session);
	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = ask(&session->processes[i], &first_open);
	return ret < 0 ? ret : shared_bos_find_objects(session);
}

static void forget_all(struct dump_session *session)
{
	for (size_t i = 0; i < session->num_processes; i++)
		snapshot_drop_process(&session->processes[i]);
	shared_bos_done(session);
}

/* Asks again if kernels had to end first. */
static int ask_idle(struct dump_session *session)
{
	int ret = ask_all(session);

	if (!ret)
		ret = drain_is_due(session);
	if (ret <= 0)
		return ret;
	forget_all(session);
	ret = drain_queues(session);
	return ret < 0 ? ret : ask_all(session);
}

static int check_state(struct dumped_process *process)
{
	int ret = preflight_process_check_reopen(process);

	if (!ret)
		ret = preflight_check_state(process);
	return ret < 0 ? ret : preflight_process_check_precision(process);
}

static int check_mappings(struct dumped_process *process)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < process->num_mappings; i++) {
		if (shared_bos_maps_other(process, &process->mappings[i]))
			continue;
		ret = preflight_process_check_mapping(process, &process->mappings[i]);
		if (!ret)
			ret = shared_bos_check_mapping(process, &process->mappings[i]);
	}
	return ret;
}

/* The first BO of the GPU that only the files of this process can map, or num_bos if there is
 * none. All sharers of an object can map it. A BO without an address may have a GEM handle, and
 * the file with the handle can map the BO, so such a BO comes last. */
static uint32_t find_mappable_bo(const struct dumped_process *process, uint32_t gpu_id)
{
	uint32_t found = process->state.num_bos;

	for (uint32_t i = 0; i < process->state.num_bos; i++) {
		if (process->state.bos[i].gpu_id != gpu_id || !shared_bos_is_private(process, i))
			continue;
		if (process->state.bos[i].addr)
			return i;
		found = found == process->state.num_bos ? i : found;
	}
	return found;
}

static int note_gpu(struct dumped_process *process, uint32_t user_gpu_id)
{
	struct dumped_gpu gpu = { .user_gpu_id = user_gpu_id };
	uint32_t bo = find_mappable_bo(process, user_gpu_id);
	int ret = dump_image_find_minor(process, user_gpu_id, &gpu.render_minor);

	if (ret < 0)
		return ret;
	gpu.has_bo = bo < process->state.num_bos;
	gpu.bo_offset = gpu.has_bo ? process->state.bos[bo].offset : 0;
	process->gpus[process->num_gpus++] = gpu;
	return 0;
}

static int note_gpus(struct dumped_process *process)
{
	int ret = 0;

	process->gpus = calloc((size_t)process->state.num_devices + 1, sizeof(*process->gpus));
	if (!process->gpus)
		return log_error(-ENOMEM, "%s: cannot record its GPUs", process->name);
	for (uint32_t i = 0; !ret && i < process->state.num_devices; i++)
		ret = note_gpu(process, process->state.devices[i].user_gpu_id);
	return ret;
}

/* KFD knows the object, but not as a BO of this process. */
static int find_object(const struct dumped_process *process, struct gem_saved *saved)
{
	uint32_t minor = 0;
	int ret;

	if (saved->bo != IMAGE_NO_BO || !shared_bos_find_named(process, saved))
		return 0;
	ret = dump_image_find_minor(process, saved->gpu_id, &minor);
	return ret < 0 ? ret
		       : preflight_refuse(process->session, DUMP_HAS_GEM_OBJECTS,
					  "%s: renderD%u, GEM handle %u,", process->name, minor,
					  saved->handle);
}

static int check_gem_handles(struct dumped_process *process)
{
	int ret = gem_list_save(process);

	for (size_t i = 0; !ret && i < process->gem.count; i++)
		ret = find_object(process, &process->gem.list[i]);
	return ret;
}

static int check_in_snapshot(struct dumped_process *process)
{
	int ret = check_state(process);

	if (!ret)
		ret = preflight_process_check_copies(process);
	if (!ret)
		ret = shared_bos_check(process);
	if (!ret)
		ret = note_gpus(process);
	if (!ret)
		ret = check_gem_handles(process);
	return ret < 0 ? ret : check_mappings(process);
}

static int check_all(struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = check_in_snapshot(&session->processes[i]);
	if (!ret)
		ret = dump_files_check(session);
	return ret < 0 ? ret : preflight_process_check_unused(session);
}

int snapshot_stop(struct dump_session *session)
{
	int ret;

	if (session->has_stopped)
		return 0;
	session->stopped_at = now_seconds();
	ret = session->num_files ? stop_queues(session) : 0;
	session->has_stopped = !ret;
	return ret;
}

int snapshot_take(struct dump_session *session)
{
	int ret;

	if (session->has_snapshot)
		return 0;
	ret = ask_idle(session);
	if (!ret)
		ret = check_all(session);
	for (size_t i = 0; !ret && i < session->num_processes; i++)
		shared_bos_change_saved_state(&session->processes[i]);
	session->has_snapshot = !ret;
	return ret;
}

static bool has_dmabufs(const struct dumped_process *process)
{
	for (uint32_t i = 0; i < process->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &process->state.bos[i];

		if (bo->alloc_flags & KFD_BO_WITH_CONTENTS)
			return bo->dmabuf_fd != KFD_INVALID_FD;
	}
	return true;
}

/* Those of the processes that CRIU has not shown yet. */
static void close_idle_dmabufs(const struct dump_session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id == DUMP_NO_ID)
			kfd_state_close(&session->processes[i].state);
	}
}

int snapshot_open_dmabufs(struct dumped_process *process)
{
	int ret;

	if (has_dmabufs(process))
		return 0;
	ret = pause_reopen_dmabufs(process);
	if (!lacks_descriptors(ret))
		return ret;
	close_idle_dmabufs(process->session);
	return pause_reopen_dmabufs(process);
}

void snapshot_drop_process(struct dumped_process *process)
{
	kfd_jobs_done(&process->jobs);
	kfd_state_done(&process->state);
	process->priv = (struct kfd_priv){ 0 };
	bo_index_done(&process->bo_index);
	gem_list_files_done(&process->gem_files);
	gem_list_saved_done(&process->gem);
	free(process->mappings);
	process->mappings = NULL;
}

void snapshot_done(struct dump_session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		snapshot_drop_process(&session->processes[i]);
		free(session->processes[i].gpus);
	}
	free(session->processes);
	free(session->queue_answers.list);
	shared_bos_done(session);
	nofile_restore(&session->old_limit);
}
