// SPDX-License-Identifier: GPL-2.0-only
/* Dumps KFD state: pause, checkpoint, contents, image. */
#include "dump/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/background.h"
#include "dump/dmabuf_files.h"
#include "dump/dump_image.h"
#include "dump/gpu_watch.h"
#include "dump/shared_bos.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "pause/kfd_files.h"
#include "pause/pause.h"
#include "preflight/bo_index.h"
#include "preflight/gem_list.h"
#include "preflight/preflight.h"

static int tell_counts(struct process_dump *dump)
{
	const struct dumped_process *process = dump->process;

	log_info("kfd %d: paused process %d: %u GPUs, %u BOs, %u objects, %" PRIu64
		 " private bytes",
		 process->id, process->vpid, process->num_devices, process->num_bos,
		 process->num_objects, process->priv_data_size);
	return 0;
}

/* CRIU opens a file that several tasks have in the task with the lowest vpid, but the kernel
 * rebuilds GPU state only in the process that owns it. */
static int check_reopen(struct process_dump *dump)
{
	const struct dumped_process *process = dump->process;

	if (process->reopen_vpid == process->vpid)
		return 0;
	return preflight_refuse(dump->session, DUMP_FILE_OF_OTHER_PROCESS,
				"kfd %d of process %d: process %d", process->id, process->vpid,
				process->reopen_vpid);
}

static int checkpoint(struct process_dump *dump)
{
	return pause_checkpoint(dump->session, dump->process, &dump->state);
}

/* The GPU, here, that the process knows as @user_gpu_id. */
static const struct topology_node *gpu_by_user_id(const struct process_dump *dump,
						  uint32_t user_gpu_id)
{
	return bo_index_find_gpu(&dump->state, dump->topology, user_gpu_id);
}

static int check_devices(struct process_dump *dump)
{
	for (uint32_t i = 0; i < dump->state.num_devices; i++) {
		const struct kfd_device_bucket *device = &dump->state.devices[i];

		if (!gpu_by_user_id(dump, device->user_gpu_id))
			return log_error(-ENODEV, "kfd %d: GPU 0x%04x is not in the topology",
					 dump->process->id, device->actual_gpu_id);
	}
	return 0;
}

/* What the kernel says of a BO must fit together. */
static int check_bo(const struct process_dump *dump, uint32_t index)
{
	const struct kfd_bo_bucket *bo = &dump->state.bos[index];
	int id = dump->process->id;

	if (!gpu_by_user_id(dump, bo->gpu_id))
		return log_error(-EINVAL,
				 "kfd %d: BO %u is of GPU 0x%04x, which is not the process's", id,
				 index, bo->gpu_id);
	if (bo->alloc_flags & KFD_BO_WITH_CONTENTS && bo->dmabuf_fd == KFD_INVALID_FD)
		return log_error(-EINVAL, "kfd %d: BO %u came without a dma-buf", id, index);
	return 0;
}

static int check_bos(struct process_dump *dump)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < dump->state.num_bos; i++)
		ret = check_bo(dump, i);
	return ret;
}

static int index_bos(struct process_dump *dump)
{
	struct dumped_process *process = dump->process;
	int ret;

	bo_index_free(process->bo_index);
	process->bo_index = NULL;
	ret = bo_index_new(&dump->state, dump->topology, &process->bo_index);
	return ret < 0 ? log_error(ret, "kfd %d: cannot list its BOs", process->id) : 0;
}

static struct preflight_subject subject_of(const struct process_dump *dump)
{
	return (struct preflight_subject){
		.session = dump->session,
		.process = dump->process,
		.state = &dump->state,
		.topology = dump->topology,
		.queue_answers = &dump->session->queue_answers,
	};
}

static int check_state(struct process_dump *dump)
{
	const struct preflight_subject subject = subject_of(dump);
	int ret = preflight_check_state(&subject);

	return ret < 0 ? ret : preflight_process_check_precision(&subject);
}

static int check_dmabufs(struct process_dump *dump)
{
	return dmabuf_files_check(dump->session);
}

static int check_mappings(struct process_dump *dump)
{
	const struct preflight_subject subject = subject_of(dump);
	pid_t pid;
	int ret;

	ret = proc_find_tracee(dump->process->vpid, &pid);
	if (!ret)
		ret = proc_list_mappings(pid, &dump->mappings, &dump->num_mappings);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list the mappings of process %d",
				 dump->process->id, dump->process->vpid);
	for (size_t i = 0; !ret && i < dump->num_mappings; i++) {
		if (shared_bos_maps_other(dump, &dump->mappings[i]))
			continue;
		ret = preflight_check_mapping(&subject, &dump->mappings[i]);
		if (!ret)
			ret = shared_bos_check_mapping(dump, &dump->mappings[i]);
	}
	return ret;
}

/* The first BO of the GPU that only the files of this process can map; the number of all BOs if
 * each of them can be mapped by others. All sharers of an object can map it. A BO without an
 * address may have a GEM handle, and the file with the handle can map the BO, so such a BO comes
 * last. */
static uint32_t find_mappable_bo(const struct process_dump *dump, uint32_t gpu_id)
{
	uint32_t found = dump->state.num_bos;

	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		if (dump->state.bos[i].gpu_id != gpu_id || !shared_bos_is_private(dump, i))
			continue;
		if (dump->state.bos[i].addr)
			return i;
		found = found == dump->state.num_bos ? i : found;
	}
	return found;
}

static int note_gpu(struct process_dump *dump, uint32_t user_gpu_id)
{
	struct dumped_process *process = dump->process;
	struct dumped_gpu gpu = { .user_gpu_id = user_gpu_id };
	uint32_t bo = find_mappable_bo(dump, user_gpu_id);
	int ret = dump_image_find_minor(dump, user_gpu_id, &gpu.render_minor);

	if (ret < 0)
		return ret;
	gpu.has_bo = bo < dump->state.num_bos;
	gpu.bo_offset = gpu.has_bo ? dump->state.bos[bo].offset : 0;
	process->gpus[process->num_gpus++] = gpu;
	return 0;
}

static int note_gpus(struct process_dump *dump)
{
	struct dumped_process *process = dump->process;
	int ret = 0;

	process->gpus = calloc((size_t)dump->state.num_devices + 1, sizeof(*process->gpus));
	if (!process->gpus)
		return log_error(-ENOMEM, "kfd %d: cannot note its GPUs", process->id);
	for (uint32_t i = 0; !ret && i < dump->state.num_devices; i++)
		ret = note_gpu(dump, dump->state.devices[i].user_gpu_id);
	return ret;
}

/* A GPU without BOs has its compute file by the object of a handle. */
static void note_gem_handle(struct dumped_process *process, const struct gem_saved *saved)
{
	for (size_t i = 0; i < process->num_gpus; i++) {
		struct dumped_gpu *gpu = &process->gpus[i];

		if (gpu->user_gpu_id != saved->gpu_id)
			continue;
		gpu->num_handles++;
		if (gpu->has_bo || gpu->handle)
			continue;
		gpu->handle = saved->handle;
		gpu->bo_offset = saved->mmap_offset;
	}
}

/* KFD knows the object, but not as a BO of this process. */
static int find_object(const struct process_dump *dump, struct gem_saved *saved)
{
	uint32_t minor = 0;
	int ret;

	if (saved->bo != IMAGE_NO_BO || !shared_bos_find_named(dump, saved))
		return 0;
	ret = dump_image_find_minor(dump, saved->gpu_id, &minor);
	return ret < 0 ? ret
		       : preflight_refuse(dump->session, DUMP_HAS_GEM_OBJECTS,
					  "kfd %d: renderD%u, GEM handle %u,", dump->process->id,
					  minor, saved->handle);
}

static int list_gem_handles(struct process_dump *dump)
{
	const struct preflight_subject subject = subject_of(dump);
	struct dumped_process *process = dump->process;
	pid_t pid;
	int ret = proc_find_tracee(process->vpid, &pid);

	if (ret < 0)
		return log_error(ret, "kfd %d: cannot find process %d", process->id, process->vpid);
	ret = gem_list_save(&subject, pid, &dump->gem);
	for (size_t i = 0; !ret && i < dump->gem.count; i++) {
		note_gem_handle(process, &dump->gem.list[i]);
		ret = find_object(dump, &dump->gem.list[i]);
	}
	return ret;
}

static int begin_contents(struct process_dump *dump)
{
	dump->session->has_contents = true;
	return dump_image_begin_contents(dump, background_missing_room(dump->session));
}

/* The contents come last, because CRIU goes on while they are saved. */
static int save_contents(struct process_dump *dump)
{
	int id = dump->process->id;
	int ret = background_is_possible(dump->session) ? background_start(dump) : -EOPNOTSUPP;

	if (!ret) {
		log_info("kfd %d: its contents are saved while CRIU goes on", id);
		return 0;
	}
	if (ret != -EOPNOTSUPP)
		log_warn("kfd %d: CRIU waits for its contents, because no thread can save them: %s",
			 id, strerror(-ret));
	ret = content_save(dump->jobs.jobs, dump->jobs.num_jobs, &dump->session->options->content);
	return ret < 0 ? ret : dump_image_finish(dump);
}

static int dump_process(struct process_dump *dump)
{
	static int (*const steps[])(struct process_dump * dump) = {
		/* What can be refused. */
		tell_counts,
		check_reopen,
		checkpoint,
		check_devices,
		check_bos,
		index_bos,
		check_state,
		shared_bos_check,
		check_dmabufs,
		note_gpus,
		list_gem_handles,
		check_mappings,
		/* The contents and the state image. */
		begin_contents,
		save_contents,
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(steps); i++)
		ret = steps[i](dump);
	return ret;
}

int dump_add_task(struct dump_session *session, pid_t pid)
{
	int ret = pid_list_add(&session->tasks, pid);

	if (!ret)
		return 0;
	session->has_gpu_files = true;
	return log_error(ret, "process %d: cannot note it", pid);
}

int dump_begin(struct dump_session *session)
{
	int ret;

	if (session->registered)
		return 0;
	session->has_gpu_files = true;
	ret = preflight_check_dump(session);
	if (ret < 0)
		return ret;
	ret = host_inventory_add(PLUGIN_NAME);
	if (ret < 0)
		return log_error(ret, "inventory: cannot note the plugin");
	ret = image_dir_remove_old();
	session->registered = !ret;
	return ret;
}

int dump_topology(struct dump_session *session, const struct topology **ret_topology)
{
	int ret = session->has_topology ? 0 : topology_read(TOPOLOGY_SYSFS, &session->topology);

	if (ret < 0)
		return log_error(ret, "topology: cannot read %s", TOPOLOGY_SYSFS);
	session->has_topology = true;
	*ret_topology = &session->topology;
	return 0;
}

static int check_mappers(const struct dump_session *session, const struct topology *topology)
{
	pid_t pid = 0;
	int ret = kfd_files_find_mapper(&session->tasks, topology, &pid);

	if (ret < 0)
		return log_error(ret, "mappings: cannot list those of all processes");
	return pid ? preflight_refuse(session, DUMP_HAS_NO_KFD_FILE, "process %d:", pid) : 0;
}

int dump_check_mappings(struct dump_session *session)
{
	const struct topology *topology = NULL;
	int ret = dump_begin(session);

	if (ret < 0 || session->mappings_are_checked)
		return ret;
	ret = dump_topology(session, &topology);
	if (!ret)
		ret = check_mappers(session, topology);
	session->mappings_are_checked = !ret;
	return ret;
}

int dump_process_has_file(const struct dumped_process *process, int fd)
{
	pid_t pid;
	int ret = proc_find_tracee(process->vpid, &pid);

	return ret < 0 ? ret : kfd_files_has(pid, fd);
}

static int check_before_pause(struct dump_session *session, int id)
{
	int ret = preflight_check_driver(session, id);

	if (!ret)
		ret = gpu_watch_start(session);
	return ret < 0 ? ret : gpu_watch_check_idle(session);
}

static uint64_t pending_signals(const struct dumped_process *process)
{
	uint64_t signals = 0;

	if (process->pid)
		(void)proc_pending_signals(process->pid, &signals);
	return signals;
}

/* CRIU saves the signals of a task before its files, and its timers after them (dump_one_task() in
 * cr-dump.c). The kernel does not show when the timers of another process expire. */
static void warn_of_signals(const struct dumped_process *process, uint64_t before)
{
	const uint64_t missed = pending_signals(process) & ~before;

	for (int signal = 1; signal <= 64; signal++) {
		if (missed >> (signal - 1) & 1)
			log_warn("kfd %d: process %d got signal %d (%s) while its GPU state was"
				 " saved, too late for CRIU's image: the restored process will not"
				 " get it, and a one-shot timer will not expire again; dump again",
				 process->id, process->vpid, signal, strsignal(signal));
	}
}

int dump_kfd(struct dump_session *session, int fd, int id, struct dumped_process **ret_process)
{
	_cleanup_(dump_image_done) struct process_dump dump = { .session = session };
	struct dumped_process *process = NULL;
	uint64_t signals;
	int ret;

	*ret_process = NULL;
	ret = dump_begin(session);
	if (!ret)
		ret = kfd_check_version(&session->kfd_minor);
	if (!ret)
		ret = dump_topology(session, &dump.topology);
	if (!ret && !session->tree_is_paused)
		ret = check_before_pause(session, id);
	if (!ret)
		ret = pause_tree(session, fd);
	if (!ret)
		ret = shared_bos_begin(session);
	if (ret < 0)
		return ret;
	ret = pause_lookup(session, fd, id, &process);
	if (ret == -ENODEV)
		return dump_image_write_plain(id, "its process sees no GPU");
	if (ret < 0)
		return ret;
	if (!process)
		return dump_image_write_plain(id,
					      "is one more file of a process that has an image");
	dump.process = process;
	signals = pending_signals(process);
	ret = dump_process(&dump);
	if (ret < 0)
		return ret;
	warn_of_signals(process, signals);
	*ret_process = process;
	return 0;
}

static int look_for_kfd(struct dump_session *session)
{
	int ret = session->kfd_is_looked_for ? 0 : kfd_files_exist(&session->tasks);

	if (ret < 0)
		return log_error(ret, "processes: cannot look for open files of /dev/kfd");
	session->has_kfd |= ret > 0;
	session->kfd_is_looked_for = true;
	return 0;
}

int dump_knows_all(struct dump_session *session)
{
	if (!session->tasks.count)
		return 0;
	if (!session->tree_is_paused) {
		int ret = look_for_kfd(session);

		return ret < 0 ? ret : !session->has_kfd;
	}
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id == DUMP_NO_ID)
			return 0;
	}
	return 1;
}

int dump_complete(struct dump_session *session)
{
	int ret;

	if (session->completed)
		return 0;
	ret = background_finish(session);
	if (!ret)
		ret = gpu_watch_check_memory(session);
	if (!ret)
		ret = pause_check_all_seen(session);
	if (!ret)
		ret = shared_bos_check_seen(session);
	if (!ret)
		ret = dmabuf_files_write(session);
	session->completed = !ret;
	return ret;
}

static void remove_images(const struct dump_session *session)
{
	/* By name first: the directory may fail to be listed. */
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id != DUMP_NO_ID)
			image_remove_kfd(session->processes[i].id);
	}
	/* Also the images of files without state, and of an older dump. */
	if (session->has_gpu_files)
		(void)image_dir_remove_state();
}

int dump_release(struct dump_session *session, int result)
{
	int ret;

	/* After an error of CRIU, nothing needs the contents. */
	background_done(session);
	/* The guard still stands: if CRIU is killed here, the guard removes the images. The queues
	 * wait no longer than the removal of some names takes. */
	if (result)
		remove_images(session);
	session->released = true;
	gpu_watch_end(session);
	if (!result)
		pause_leave_to_guard(session);
	ret = pause_undo_all(session);
	if (!result && !ret)
		content_totals_log(&session->totals, true, session->options->content.checksum);
	session->totals = (struct content_totals){ 0 };
	return ret;
}

void dump_done(struct dump_session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		free(session->processes[i].gpus);
		bo_index_free(session->processes[i].bo_index);
	}
	background_done(session);
	free(session->processes);
	free(session->dmabufs);
	free(session->queue_answers.list);
	shared_bos_done(session);
	gpu_watch_end(session);
	pause_close_files(session);
	pid_list_done(&session->tasks);
	topology_done(&session->topology);
	*session = (struct dump_session){ .options = session->options };
}
