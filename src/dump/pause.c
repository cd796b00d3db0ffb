// SPDX-License-Identifier: GPL-2.0-only
/* Pauses, each of which is undone exactly once; what a dump does meanwhile is
 * the dump unit's business. */
#include "dump/pause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dump_guard.h"
#include "dump/kfd_files.h"
#include "image/image_dir.h"
#include "kernel/kfd.h"

#define NAME_SIZE 32

struct kfd_state pause_counts(const struct dumped_process *process)
{
	return (struct kfd_state){
		.vpid = process->vpid,
		.num_devices = process->num_devices,
		.num_bos = process->num_bos,
		.num_objects = process->num_objects,
		.priv_data_size = process->priv_data_size,
	};
}

static int try_checkpoint(const struct dumped_process *process, int fd)
{
	_cleanup_(kfd_state_done) struct kfd_state state = pause_counts(process);
	int ret = kfd_state_alloc(&state);

	return ret < 0 ? ret : kfd_checkpoint(fd, &state, DUMP_LOWEST_FD);
}

static int add_process(struct dump_session *session, int fd, int id)
{
	struct dumped_process process = { .id = id, .fd = fd_dup_above(fd, DUMP_LOWEST_FD) };
	int ret;

	if (process.fd < 0)
		return process.fd;
	ret = array_append(&session->processes, &session->num_processes, sizeof(process), &process);
	if (ret < 0)
		fd_close(&process.fd);
	return ret;
}

/* What a process goes by in the log. */
static const char *name_of(const struct dumped_process *process, char name[static NAME_SIZE])
{
	if (process->id != DUMP_NO_ID)
		(void)snprintf(name, NAME_SIZE, "kfd %d", process->id);
	else
		(void)snprintf(name, NAME_SIZE, "process %d", process->pid);
	return name;
}

int pause_report_refusal(const struct dumped_process *process, enum kfd_criu_op op, int ret,
			 const char *doing)
{
	const char *meaning = kfd_explain(op, ret);
	char name[NAME_SIZE];

	if (meaning)
		return log_error(ret, "%s: cannot %s, %s", name_of(process, name), doing, meaning);
	return log_error(ret, "%s: cannot %s", name_of(process, name), doing);
}

/* A process may still be paused by a dump that was killed together with its guard. Another pause on
 * top could not be undone. */
static int undo_old_pause(const struct dumped_process *process)
{
	int ret = kfd_unpause(process->fd);
	char name[NAME_SIZE];

	if (!ret)
		log_warn("%s: was still paused by a dump that did not end", name_of(process, name));
	/* Not paused; or what the pause is going to say and explain: not of this dump, no
	 * right, no such call. */
	if (!ret || ret == -EINVAL || ret == -EBADF || ret == -EACCES || ret == -ENOTTY)
		return 0;
	return log_error(ret, "%s: cannot undo an old pause", name_of(process, name));
}

static void note_counts(struct dumped_process *process, const struct kfd_state *counts)
{
	process->vpid = counts->vpid;
	process->num_devices = counts->num_devices;
	process->num_bos = counts->num_bos;
	process->num_objects = counts->num_objects;
	process->priv_data_size = counts->priv_data_size;
}

/* Stops the queues. From here on every way out goes by pause_undo_all(). */
static int stop_queues(struct dumped_process *process)
{
	struct kfd_state counts;
	int ret = kfd_pause(process->fd, &counts);

	if (ret < 0)
		return ret;
	process->paused = true;
	note_counts(process, &counts);
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

/* Not paused, or not part of this dump. */
static bool is_none(int error)
{
	return error == -EINVAL || error == -EBADF || error == -ESRCH || error == -ENODEV;
}

/* What CHECKPOINT says of a process that is not paused it says, too, of one whose counts have
 * changed since: a range was split or merged. UNPAUSE tells them apart; then it is paused again.
 * One that has an image would have run since that was made. 1, 0 or -errno. */
static int is_paused_but_changed(const struct dump_session *session, int fd)
{
	struct dumped_process *process;
	struct kfd_state counts;
	int ret = kfd_unpause(fd);

	if (ret < 0)
		return is_none(ret) ? 0 : ret;
	ret = kfd_pause(fd, &counts);
	if (ret < 0)
		return ret;
	process = find_paused(session, counts.vpid);
	if (!process)
		return kfd_unpause(fd);
	if (process->id != DUMP_NO_ID)
		return -EAGAIN;
	log_warn("process %d: its counts changed, its queues run for a moment more", process->pid);
	note_counts(process, &counts);
	return 1;
}

/* Whether @fd is one more file of a process that is paused already. CHECKPOINT works on a paused
 * process only, and changes nothing; a second pause could not be undone. So what is no clear answer
 * is an error: 1, 0 or -errno. */
static int is_paused(const struct dump_session *session, int fd)
{
	bool unclear = false;

	for (size_t i = 0; i < session->num_processes; i++) {
		int ret;

		if (!session->processes[i].paused)
			continue;
		ret = try_checkpoint(&session->processes[i], fd);
		if (!ret)
			return 1;
		if (!is_none(ret))
			return ret;
		unclear |= ret == -EINVAL;
	}
	return unclear ? is_paused_but_changed(session, fd) : 0;
}

/* A kernel may be unable to checkpoint the process at all. */
static int report_unclear(int ret, int id, pid_t pid)
{
	const struct dumped_process process = { .id = id, .pid = pid };

	return pause_report_refusal(&process, KFD_CHECKPOINT, ret, "tell whether it is paused");
}

/* With a guard, who knows the process before it is paused. Nothing is said of a process that needs
 * no pause (-ENODEV), or is not part of the dump (-EBADF). */
static int guard_and_pause(struct dump_session *session, struct dumped_process *process)
{
	int ret = dump_guard_start(session);

	if (ret < 0) {
		char name[NAME_SIZE];

		return log_error(ret, "%s: cannot start a guard for the process",
				 name_of(process, name));
	}
	ret = stop_queues(process);
	if (!ret || ret == -ENODEV || ret == -EBADF)
		return ret;
	return pause_report_refusal(process, KFD_PROCESS_INFO, ret, "pause the process");
}

int pause_process(struct dump_session *session, struct dumped_process *process)
{
	int ret;

	if (process->paused)
		return 0;
	ret = undo_old_pause(process);
	if (!ret)
		ret = guard_and_pause(session, process);
	return ret == -EBADF
		       ? pause_report_refusal(process, KFD_PROCESS_INFO, ret, "pause the process")
		       : ret;
}

int pause_refresh(struct dump_session *session, struct dumped_process *process)
{
	int ret;

	log_info("kfd %d: its counts changed, asking again", process->id);
	if (session->num_processes > 1)
		log_warn("kfd %d: its queues run for a moment more than those of others",
			 process->id);
	ret = kfd_unpause(process->fd);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot unpause the process", process->id);
	process->paused = false;
	return pause_process(session, process);
}

/* CRIU may never show the file of a process that needs no pause, or is not part of the dump. */
static int pause_file(struct dump_session *session, const struct tree_file *file)
{
	struct dumped_process *process;
	int ret = add_process(session, file->fd, DUMP_NO_ID);

	if (ret < 0)
		return log_error(ret, "process %d: cannot keep its /dev/kfd", file->pid);
	process = &session->processes[session->num_processes - 1];
	process->pid = file->pid;
	process->reopen_vpid = file->reopen_vpid;
	ret = guard_and_pause(session, process);
	if (!ret) {
		log_info("process %d: its queues are stopped", file->pid);
		return 0;
	}
	fd_close(&process->fd);
	session->num_processes--;
	return ret == -ENODEV || ret == -EBADF ? 0 : ret;
}

/* Of all of them, before one is paused: from then on a paused process is taken for
 * one of this dump's. */
static int undo_old_pauses(const struct tree_files *files)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++) {
		const struct tree_file *file = &files->list[i];

		ret = undo_old_pause(&(const struct dumped_process){
			.id = DUMP_NO_ID, .pid = file->pid, .fd = file->fd });
	}
	return ret;
}

int pause_tree(struct dump_session *session, int shown)
{
	_cleanup_(kfd_files_done) struct tree_files files = { 0 };
	int ret;

	if (session->tree_is_paused)
		return 0;
	session->tree_is_paused = true;
	ret = kfd_files_find(&session->tasks, shown, DUMP_LOWEST_FD, &files);
	if (ret == -ENOSYS || ret == -EPERM) {
		log_warn(
			"processes are paused one after the other, as their files cannot be found: %s",
			strerror(-ret));
		return 0;
	}
	if (ret < 0)
		return log_error(ret, "processes: cannot find their files of /dev/kfd");
	ret = undo_old_pauses(&files);
	for (size_t i = 0; !ret && i < files.count; i++) {
		ret = is_paused(session, files.list[i].fd);
		if (ret < 0)
			return report_unclear(ret, DUMP_NO_ID, files.list[i].pid);
		ret = ret ? 0 : pause_file(session, &files.list[i]);
	}
	return ret;
}

/* The process that was paused through this very file; NULL: none. */
static int find_process(const struct dump_session *session, int fd,
			struct dumped_process **ret_process)
{
	*ret_process = NULL;
	for (size_t i = 0; i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];
		int ret = process->id == DUMP_NO_ID ? kfd_files_same(process->fd, fd) : 0;

		if (ret < 0)
			return ret;
		if (ret) {
			*ret_process = process;
			return 0;
		}
	}
	return 0;
}

int pause_lookup(struct dump_session *session, int fd, int id, struct dumped_process **ret_process)
{
	struct dumped_process *process;
	int ret = find_process(session, fd, &process);

	if (!ret && !process)
		ret = is_paused(session, fd);
	if (ret < 0)
		return report_unclear(ret, id, 0);
	if (ret) {
		*ret_process = NULL;
		return 0;
	}
	if (!process) {
		ret = add_process(session, fd, id);
		if (ret < 0)
			return log_error(ret, "kfd %d: cannot keep its descriptor", id);
		process = &session->processes[session->num_processes - 1];
	}
	process->id = id;
	*ret_process = process;
	return 0;
}

/* Whether CRIU has saved the process, whose file it has not shown. What is frozen with the tree is
 * not part of it, and some hosts do not say which it is; they have written a core image since the
 * pause, then, and what was there before is an older dump's. */
static bool is_dumped(const struct dump_session *session, const struct dumped_process *process)
{
	const struct timespec *before = &process->core_time;
	struct timespec now;
	int ret;

	if (session->tasks.count)
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
			return log_error(-EIO,
					 "process %d: the file that it was paused by was not saved",
					 process->pid);
		log_warn("process %d: its queues stood still, but it is not dumped", process->pid);
	}
	return 0;
}

int pause_undo_all(struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];
		char name[NAME_SIZE];
		int failed;

		if (!process->paused)
			continue;
		failed = kfd_unpause(process->fd);
		process->paused = false;
		fd_close(&process->fd);
		if (failed < 0)
			ret = log_error(failed, "%s: cannot unpause process %d",
					name_of(process, name), process->vpid);
		else
			log_info("%s: unpaused process %d", name_of(process, name), process->vpid);
	}
	dump_guard_end(session);
	return ret;
}
