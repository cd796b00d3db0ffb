// SPDX-License-Identifier: GPL-2.0-only
/* Pauses processes through their /dev/kfd files, and knows which file belongs to which process. */
#include "pause/pause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "criu/guard.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image_dir.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "pause/dump_guard.h"
#include "pause/kfd_files.h"
#include "preflight/preflight.h"
#include "preflight/preflight_process.h"

/* The counts of PROCESS_INFO, without arrays. */
static struct kfd_state counts_of(const struct dumped_process *process)
{
	return (struct kfd_state){
		.vpid = process->state.vpid,
		.num_devices = process->state.num_devices,
		.num_bos = process->state.num_bos,
		.num_objects = process->state.num_objects,
		.priv_data_size = process->state.priv_data_size,
	};
}

/* For questions and log lines about the process that has @file. */
static struct dumped_process process_of(struct dump_session *session,
					const struct dumped_file *file)
{
	struct dumped_process process = { .session = session,
					  .id = DUMP_NO_ID,
					  .pid = file->pid,
					  .fd = file->fd,
					  .reopen_vpid = file->reopen_vpid };

	(void)snprintf(process.name, sizeof(process.name), "process %d", file->pid);
	return process;
}

/* A process that has not been paused yet. It borrows the descriptor of @file. */
static int add_process(struct dump_session *session, const struct dumped_file *file)
{
	const struct dumped_process process = process_of(session, file);

	return array_append(&session->processes, &session->num_processes, sizeof(process),
			    &process);
}

static struct dumped_process *last_process(const struct dump_session *session)
{
	return &session->processes[session->num_processes - 1];
}

int pause_report_refusal(const struct dumped_process *process, enum kfd_criu_op op, int ret,
			 const char *doing)
{
	const char *meaning = kfd_explain(op, ret);

	if (meaning)
		return log_error(ret, "%s: cannot %s, %s", process->name, doing, meaning);
	return log_error(ret, "%s: cannot %s", process->name, doing);
}

/* A dump that was killed together with its guard leaves the process paused. A second pause could
 * not be undone, so the first one is undone here. */
static int undo_old_pause(const struct dumped_process *process)
{
	int ret = kfd_unpause(process->fd);

	if (!ret)
		log_warn("%s: was still paused by a dump that did not end", process->name);
	/* -EINVAL: not paused. The pause that follows reports and explains the other errors. */
	if (!ret || ret == -EINVAL || ret == -EBADF || ret == -EACCES || ret == -ENOTTY)
		return 0;
	return log_error(ret, "%s: cannot undo an old pause", process->name);
}

/* The task that has @vpid. The descriptor of a /dev/kfd may have been found in a task that has
 * inherited it. */
static int find_pid(struct dumped_process *process)
{
	const struct pid_list *tasks = &process->session->tasks;
	pid_t vpid = 0;

	if (!proc_vpid(process->pid, &vpid) && vpid == process->vpid)
		return 0;
	for (size_t i = 0; i < tasks->count; i++) {
		process->pid = tasks->pids[i];
		if (!proc_vpid(process->pid, &vpid) && vpid == process->vpid)
			return 0;
	}
	return proc_find_tracee(process->vpid, &process->pid);
}

/* Stops the queues. pause_undo_all() must follow. */
static int stop_queues(struct dumped_process *process)
{
	int ret = kfd_pause(process->fd, &process->state);

	if (ret < 0)
		return ret;
	process->paused = true;
	process->session->stopped_late |= process->session->criu_saves;
	process->vpid = process->state.vpid;
	(void)image_dir_task_time(process->vpid, &process->core_time);
	return 0;
}

static struct dumped_process *find_paused(const struct dump_session *session, pid_t vpid)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].paused && session->processes[i].vpid == vpid)
			return &session->processes[i];
	}
	return NULL;
}

/* A kernel may be unable to checkpoint the process at all. */
static int report_unclear(const struct dumped_process *asked, int ret)
{
	return pause_report_refusal(asked, KFD_CHECKPOINT, ret, "tell whether it is paused");
}

static int report_pause(const struct dumped_process *process, int ret)
{
	return pause_report_refusal(process, KFD_PROCESS_INFO, ret, "pause the process");
}

static int let_run(struct dumped_process *process)
{
	int ret = kfd_unpause(process->fd);

	if (ret < 0)
		return log_error(ret, "%s: cannot unpause the process", process->name);
	process->paused = false;
	return 0;
}

static int stop_again(struct dumped_process *process)
{
	int ret = stop_queues(process);

	return ret < 0 ? report_pause(process, ret) : 0;
}

int pause_let_run(struct dump_session *session, double seconds)
{
	const time_t whole = (time_t)seconds;
	const struct timespec step = { whole, (long)((seconds - (double)whole) * 1e9) };
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = let_run(&session->processes[i]);
	if (ret < 0)
		return ret;
	/* A signal may end it early. */
	(void)nanosleep(&step, NULL);
	session->stopped_at = now_seconds();
	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = stop_again(&session->processes[i]);
	return ret;
}

/* Unpauses @process and pauses it again, for new counts. No contents are saved yet. */
static int refresh(struct dumped_process *process)
{
	int ret;

	log_info("%s: its counts changed, asking again", process->name);
	if (process->session->num_processes > 1)
		log_warn("%s: its queues run briefly after the others have stopped", process->name);
	ret = let_run(process);
	return ret < 0 ? ret : stop_again(process);
}

static int checkpoint(int fd, struct kfd_state *state)
{
	return kfd_checkpoint(fd, state, HOST_LOWEST_FD);
}

static int read_state(const struct dumped_process *process,
		      int (*read)(int fd, struct kfd_state *state), struct kfd_state *ret_state)
{
	_cleanup_(kfd_state_done) struct kfd_state state = counts_of(process);
	int ret = kfd_state_alloc(&state);

	if (!ret)
		ret = read(process->fd, &state);
	if (!ret)
		*ret_state = take_struct(state);
	return ret;
}

int pause_look(const struct dumped_process *process, struct kfd_state *ret_state)
{
	return read_state(process, kfd_look, ret_state);
}

int pause_checkpoint(struct dumped_process *process)
{
	int ret = read_state(process, checkpoint, &process->state);

	if (ret == -EINVAL) {
		ret = refresh(process);
		if (ret < 0)
			return ret;
		ret = read_state(process, checkpoint, &process->state);
	}
	if (!ret)
		process->priv = kfd_priv_of_state(&process->state);
	if (!ret || ret == -EMFILE || ret == -ENFILE)
		return ret;
	return pause_report_refusal(process, KFD_CHECKPOINT, ret, "checkpoint");
}

int pause_reopen_dmabufs(struct dumped_process *process)
{
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	int ret = read_state(process, checkpoint, &state);

	/* Processes may share buffers, so the image would be of two moments. */
	if (ret == -EINVAL)
		return log_error(
			-EAGAIN,
			"%s: has changed after its queues were stopped, when contents of the job were saved already; dump again",
			process->name);
	if (ret == -EMFILE || ret == -ENFILE)
		return ret;
	if (ret < 0)
		return pause_report_refusal(process, KFD_CHECKPOINT, ret, "checkpoint");
	for (uint32_t i = 0; i < state.num_bos; i++) {
		process->state.bos[i].dmabuf_fd = state.bos[i].dmabuf_fd;
		state.bos[i].dmabuf_fd = KFD_INVALID_FD;
	}
	return 0;
}

/* The last process has been paused, through @file. */
static int note_pause(struct dump_session *session, struct dumped_file *file)
{
	struct dumped_process *process = last_process(session);
	int ret = find_pid(process);

	file->process = session->num_processes - 1;
	if (ret < 0)
		return log_error(ret, "process %d: cannot find it", process->vpid);
	(void)snprintf(process->name, sizeof(process->name), "process %d", process->pid);
	log_info("%s: its queues are stopped", process->name);
	preflight_process_warn_of_ghost(process);
	return 0;
}

/* CRIU may never show the file of a process that sees no GPU, or is not part of the dump. Such a
 * file stays without a process, and its error waits until CRIU shows it. */
static int pause_owner(struct dump_session *session, struct dumped_file *file)
{
	struct dumped_process *process;
	int ret = add_process(session, file);

	if (ret < 0)
		return log_error(ret, "process %d: cannot record its /dev/kfd", file->pid);
	process = last_process(session);
	ret = stop_queues(process);
	if (!ret && find_paused(session, process->vpid) != process)
		/* The owner of @file has a KFD process for another of its files. */
		return preflight_refuse(session, DUMP_HAS_CONTEXTS, "process %d:", file->pid);
	if (!ret)
		return note_pause(session, file);
	session->num_processes--;
	file->refusal = ret;
	return ret == -ENODEV || ret == -EBADF ? 0 : report_pause(process, ret);
}

/* The errors for a process that is not paused, or is not part of this dump. */
static bool is_not_paused(int error)
{
	return error == -EINVAL || error == -EBADF || error == -ESRCH || error == -ENODEV;
}

/* Finds out whether @file belongs to the process that was paused last, which the driver must not
 * pause twice: it undoes only one pause. UNPAUSE tells: it answers -EINVAL if the process of the
 * file is not paused. That is the usual answer, and it costs nothing and leaves no line in the
 * kernel's log. Otherwise it starts the queues, and the plugin pauses the process again. */
static int ask_owner(struct dump_session *session, struct dumped_file *file)
{
	struct dumped_process *last = last_process(session);
	const struct dumped_process asked = process_of(session, file);
	int ret = kfd_unpause(file->fd);

	if (ret < 0)
		return is_not_paused(ret) ? 0 : report_unclear(&asked, ret);
	last->paused = false;
	file->process = session->num_processes - 1;
	return stop_again(last);
}

/* Pauses the owner of file @index, and finds its other files. */
static int pause_file(struct dump_session *session, size_t index)
{
	const size_t num_processes = session->num_processes;
	int ret = pause_owner(session, &session->files[index]);

	if (session->num_processes == num_processes)
		return ret;
	for (size_t i = index + 1; !ret && i < session->num_files; i++) {
		if (session->files[i].process == DUMP_NO_PROCESS)
			ret = ask_owner(session, &session->files[i]);
	}
	return ret;
}

/* Runs for all files before the first pause: later every paused process is one of this dump. */
static int undo_old_pauses(struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_files; i++) {
		const struct dumped_process process = process_of(session, &session->files[i]);

		ret = undo_old_pause(&process);
	}
	return ret;
}

int pause_tree(struct dump_session *session)
{
	int ret = undo_old_pauses(session);

	if (ret < 0)
		return ret;
	ret = dump_guard_start(session);
	if (ret < 0)
		return log_error(ret, "dump: cannot start a guard for its processes");
	for (size_t i = 0; !ret && i < session->num_files; i++) {
		if (session->files[i].process == DUMP_NO_PROCESS)
			ret = pause_file(session, i);
	}
	return ret;
}

int pause_lookup(struct dump_session *session, int fd, int id, struct dumped_process **ret_process)
{
	struct dumped_process asked = { .id = id };
	struct dumped_process *process;
	struct dumped_file *file;
	int ret = kfd_files_find_listed(session, fd, &file);

	*ret_process = NULL;
	(void)snprintf(asked.name, sizeof(asked.name), "kfd %d", id);
	if (ret < 0)
		return report_unclear(&asked, ret);
	if (!file)
		return log_error(
			-EAGAIN,
			"kfd %d: no task had this file when the plugin stopped the queues of all tasks; dump again",
			id);
	if (file->process == DUMP_NO_PROCESS)
		return file->refusal == -ENODEV ? -ENODEV : report_pause(&asked, file->refusal);
	process = &session->processes[file->process];
	if (process->id != DUMP_NO_ID)
		return 0;
	process->id = id;
	memcpy(process->name, asked.name, sizeof(process->name));
	*ret_process = process;
	return 0;
}

/* Whether the process, whose file CRIU has not shown, is part of the dump. CRIU may freeze
 * processes that it does not dump, and CRIU before 4.0 does not name the tasks of a dump. There a
 * core image tells, if it is newer than the pause: an older one is of an older dump. */
static bool is_dumped(const struct dump_session *session, const struct dumped_process *process)
{
	const struct timespec *before = &process->core_time;
	struct timespec now;
	int ret;

	if (session->tasks_are_named)
		return true;
	ret = image_dir_task_time(process->vpid, &now);
	if (ret < 0)
		return ret != -ENOENT;
	return now.tv_sec != before->tv_sec || now.tv_nsec != before->tv_nsec;
}

int pause_check_all_seen(const struct dump_session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		const struct dumped_process *process = &session->processes[i];

		if (!process->paused || process->id != DUMP_NO_ID)
			continue;
		if (is_dumped(session, process))
			return log_error(
				-EIO,
				"process %d: the /dev/kfd by which it was paused was not saved",
				process->pid);
		log_warn("process %d: was paused, but is not part of the dump", process->pid);
	}
	return 0;
}

void pause_leave_to_guard(struct dump_session *session)
{
	int ret = host_ends_tasks() && session->num_processes ? dump_guard_leave(session) : -ENOENT;

	if (!ret)
		log_info("dump: the queues of the job stay stopped until CRIU has killed it");
	else if (ret != -ENOENT)
		log_warn(
			"dump: the queues of the job run for a moment before CRIU kills it, because no guard can stand by: %s",
			strerror(-ret));
}

int pause_undo_all(struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];
		int failed;

		if (!process->paused)
			continue;
		failed = kfd_unpause(process->fd);
		process->paused = false;
		if (failed < 0)
			ret = log_error(failed, "%s: cannot unpause process %d", process->name,
					process->vpid);
		else
			log_info("%s: unpaused process %d", process->name, process->vpid);
	}
	guard_end(&session->guard);
	pause_close_files(session);
	return ret;
}

void pause_close_files(struct dump_session *session)
{
	for (size_t i = 0; i < session->num_files; i++)
		fd_close(&session->files[i].fd);
	free(session->files);
	session->files = NULL;
	session->num_files = 0;
}
