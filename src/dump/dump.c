// SPDX-License-Identifier: GPL-2.0-only
/* Dumps KFD state: gives files their images, and saves contents. snapshot.c asks the kernel. */
#include "dump/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/base.h"
#include "content/kfd_jobs.h"
#include "content/pool.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/background.h"
#include "dump/dump_files.h"
#include "dump/dump_image.h"
#include "dump/gpu_watch.h"
#include "dump/snapshot.h"
#include "image/image_dir.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "pause/kfd_files.h"
#include "pause/pause.h"
#include "preflight/preflight.h"
#include "session/dump_session.h"
#include "sharing/shared_bos.h"

static enum dump_way choose_way(const struct dump_session *session)
{
	if (background_is_possible(session))
		return session->pool ? DUMP_WRITEBACK : DUMP_WHILE_CRIU;
	return session->pool ? DUMP_COPY_AT_ONCE : DUMP_AT_ONCE;
}

static int save_at_once(struct dumped_process *process)
{
	const struct kfd_jobs *jobs = &process->jobs;
	int ret = content_save(jobs->jobs, jobs->num_jobs, &process->session->options->content);

	if (!ret)
		ret = dump_image_finish(process);
	snapshot_drop_process(process);
	return ret;
}

static int save_contents(struct dumped_process *process)
{
	struct dump_session *session = process->session;
	int ret;

	if (session->way == DUMP_WAY_OPEN)
		session->way = choose_way(session);
	if (session->way == DUMP_AT_ONCE)
		return save_at_once(process);
	ret = background_start(process);
	if (ret < 0) {
		log_warn("%s: CRIU waits for its contents, because no thread can save them: %s",
			 process->name, strerror(-ret));
		return save_at_once(process);
	}
	if (session->way == DUMP_COPY_AT_ONCE)
		return background_await_copies(session);
	log_info("%s: its contents are saved while CRIU goes on", process->name);
	return 0;
}

/* Contents that are being saved while CRIU goes on hold dma-bufs, too. */
static int open_dmabufs(struct dumped_process *process)
{
	int ret = snapshot_open_dmabufs(process);

	if (ret != -EMFILE && ret != -ENFILE)
		return ret;
	ret = background_finish(process->session);
	if (!ret)
		ret = snapshot_open_dmabufs(process);
	return ret == -EMFILE || ret == -ENFILE
		       ? pause_report_refusal(process, KFD_CHECKPOINT, ret, "checkpoint")
		       : ret;
}

static int save_process(struct dumped_process *process)
{
	const struct kfd_state *state = &process->state;
	int ret;

	log_info("%s: paused process %d: %u GPUs, %u BOs, %u objects, %" PRIu64 " private bytes",
		 process->name, process->vpid, state->num_devices, state->num_bos,
		 state->num_objects, state->priv_data_size);
	ret = open_dmabufs(process);
	if (!ret)
		ret = dump_image_begin_contents(process, background_missing_room(process->session));
	return ret < 0 ? ret : save_contents(process);
}

int dump_add_task(struct dump_session *session, pid_t pid)
{
	int ret = pid_list_has(&session->tasks, pid) ? 0 : pid_list_add(&session->tasks, pid);

	if (!ret)
		return 0;
	session->has_gpu_files = true;
	return log_error(ret, "process %d: cannot record it", pid);
}

static int begin(struct dump_session *session)
{
	int ret;

	if (session->registered)
		return 0;
	session->has_gpu_files = true;
	ret = preflight_check_dump(session);
	if (ret < 0)
		return ret;
	ret = topology_read(TOPOLOGY_SYSFS, &session->topology);
	if (ret < 0)
		return log_error(ret, "topology: cannot read %s", TOPOLOGY_SYSFS);
	ret = host_inventory_add(PLUGIN_NAME);
	if (ret < 0)
		return log_error(ret, "inventory: cannot record the plugin");
	ret = image_dir_remove_old();
	session->registered = !ret;
	return ret;
}

int dump_stop(struct dump_session *session)
{
	dev_t device;
	int listed, ret;

	if (session->files_are_listed || !session->tasks.count ||
	    kfd_read_device(&device) == -ENOENT)
		return 0;
	listed = kfd_files_list(session, DUMP_NO_FILE);
	if (!listed && !session->num_files)
		return 0;
	/* A dump that fails leaves no images of an older one, either. */
	ret = begin(session);
	if (!ret)
		ret = listed;
	if (!ret)
		ret = snapshot_stop(session);
	return ret < 0 || host_is_timed() ? ret : snapshot_take(session);
}

int dump_look(struct dump_session *session, int fd)
{
	int ret = begin(session);

	session->criu_saves = true;
	if (!ret)
		ret = kfd_files_list(session, fd);
	if (!ret)
		ret = snapshot_stop(session);
	return ret < 0 ? ret : snapshot_take(session);
}

int dump_check_mappings(struct dump_session *session)
{
	int ret = begin(session);

	if (ret < 0 || session->mappings_are_checked)
		return ret;
	ret = kfd_files_check_mappers(session);
	session->mappings_are_checked = !ret;
	return ret;
}

static uint64_t pending_signals(const struct dumped_process *process)
{
	uint64_t signals = 0;

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
			log_warn(
				"kfd %d: process %d got signal %d (%s) while its GPU state was saved, too late for CRIU's image: the restored process will not get it, and a one-shot timer will not expire again; dump again",
				process->id, process->vpid, signal, strsignal(signal));
	}
}

int dump_kfd(struct dump_session *session, int fd, int id)
{
	struct dumped_process *process = NULL;
	uint64_t signals;
	int ret = pause_lookup(session, fd, id, &process);

	if (ret == -ENODEV)
		return dump_image_write_plain(id, "its process sees no GPU");
	if (ret < 0)
		return ret;
	if (!process)
		return dump_image_write_plain(id,
					      "is one more file of a process that has an image");
	signals = pending_signals(process);
	ret = save_process(process);
	if (!ret)
		warn_of_signals(process, signals);
	return ret;
}

static bool has_all(const struct dump_session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id == DUMP_NO_ID)
			return false;
	}
	return true;
}

/* All contents are saved. A later error cannot spoil them. */
static int check_memory(struct dump_session *session)
{
	int ret = session->memory_is_checked ? 0 : gpu_watch_check_memory(session);

	session->memory_is_checked = !ret;
	return ret;
}

/* CRIU may freeze processes that it does not dump. Only if CRIU has named the tasks, it is going to
 * show all processes. */
int dump_end_file(struct dump_session *session)
{
	int ret = 0;

	if (!has_all(session))
		return 0;
	if (!session->background)
		ret = check_memory(session);
	return ret < 0 || !session->tasks_are_named ? ret : dump_files_write(session);
}

/* The contents need no GPU any more: they are saved, or are in the memory of the pool. */
static int end_copies(struct dump_session *session)
{
	int ret;

	if (session->way != DUMP_WRITEBACK && session->way != DUMP_COPY_AT_ONCE)
		return background_finish(session);
	ret = background_await_copies(session);
	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = gpu_watch_check(session, &session->processes[i]);
	return ret;
}

int dump_complete(struct dump_session *session)
{
	int ret;

	if (session->completed)
		return 0;
	ret = end_copies(session);
	if (!ret)
		ret = check_memory(session);
	if (!ret)
		ret = pause_check_all_seen(session);
	if (!ret)
		ret = shared_bos_check_seen(session);
	if (!ret)
		ret = dump_files_write(session);
	session->completed = !ret;
	return ret;
}

static void drop_images(struct dump_session *session)
{
	background_done(session);
	dump_image_remove_all(session);
}

static int release(struct dump_session *session, int result)
{
	int ret;

	/* The guard still stands: if CRIU is killed here, the guard removes the images. The queues
	 * wait no longer than the removal of some names takes. */
	if (result)
		drop_images(session);
	session->released = true;
	gpu_watch_end(session);
	dump_files_done(session);
	if (!result)
		pause_leave_to_guard(session);
	ret = pause_undo_all(session);
	/* Complete images are worth more than queues of a job that is about to end. */
	if (!result && host_ends_tasks())
		ret = 0;
	if (!result && ret)
		drop_images(session);
	if (session->stopped_at > 0)
		session->totals.stopped_s = now_seconds() - session->stopped_at;
	session->stopped_at = 0;
	/* Contents that are still to be written are not in the totals yet. */
	if (session->background)
		return ret;
	if (!result && !ret)
		content_totals_log(&session->totals, true, session->options->content.checksum);
	session->totals = (struct content_totals){ 0 };
	return ret;
}

int dump_end(struct dump_session *session, int result)
{
	int ret = result ? 0 : dump_complete(session);
	int released = release(session, result ? result : ret);

	return ret < 0 ? ret : released;
}

void dump_done(struct dump_session *session)
{
	background_done(session);
	dump_files_done(session);
	pool_free(session->pool);
	base_free(session->base);
	free(session->dmabufs);
	snapshot_done(session);
	gpu_watch_end(session);
	pause_close_files(session);
	pid_list_done(&session->tasks);
	topology_done(&session->topology);
	*session = (struct dump_session){ .options = session->options };
}
