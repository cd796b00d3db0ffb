// SPDX-License-Identifier: GPL-2.0-only
/* Finds the /dev/kfd files and the GPUs of tracees through /proc and pidfd_getfd(). pause.c pauses
 * the owners of the files. */
#include "pause/kfd_files.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "preflight/preflight.h"
#include "session/dump_session.h"

int kfd_files_find_listed(const struct dump_session *session, int fd, struct dumped_file **ret_file)
{
	*ret_file = NULL;
	for (size_t i = 0; !*ret_file && i < session->num_files; i++) {
		int ret = fd_is_same(session->files[i].fd, fd);

		if (ret < 0)
			return ret;
		if (ret)
			*ret_file = &session->files[i];
	}
	return 0;
}

/* Whether descriptor @number of the task is /dev/kfd: 1, 0, or -errno if the plugin lacks
 * descriptors or memory. */
static int is_kfd(pid_t pid, int number)
{
	struct stat stat;
	int ret = proc_stat_fd(pid, number, &stat);

	return ret > 0 ? kfd_is_file(&stat) : ret;
}

/* Lists the file of descriptor @number of the task. The call for a first file shows whether the
 * kernel compares files at all. */
static int add_file(struct dump_session *session, pid_t pid, int number, int lowest_fd)
{
	struct dumped_file file = { .pid = pid, .process = DUMP_NO_PROCESS }, *known;
	_cleanup_close_ int fd = -1;
	int ret = proc_vpid(pid, &file.reopen_vpid);

	if (!ret)
		ret = proc_get_fd(pid, number, &fd);
	/* A process that runs on may have closed the file, or have ended. */
	if (ret < 0)
		return ret == -EBADF || ret == -ESRCH ? 0 : ret;
	ret = fd_is_same(fd, fd);
	if (ret >= 0)
		ret = kfd_files_find_listed(session, fd, &known);
	if (ret < 0)
		return ret;
	if (known) {
		if (file.reopen_vpid < known->reopen_vpid)
			known->reopen_vpid = file.reopen_vpid;
		return 0;
	}
	ret = fd_move_up(&fd, lowest_fd);
	file.fd = fd;
	if (!ret)
		ret = array_append(&session->files, &session->num_files, sizeof(file), &file);
	if (!ret)
		(void)take_fd(&fd);
	return ret;
}

static int find_of(struct dump_session *session, pid_t pid, int lowest_fd)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int number, ret = proc_open_fds(pid, &stream);

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	while (!ret && proc_next_fd(stream, &number, &ret)) {
		ret = is_kfd(pid, number);
		if (ret > 0)
			ret = add_file(session, pid, number, lowest_fd);
	}
	return ret;
}

int kfd_files_find(struct dump_session *session, int lowest_fd)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->tasks.count; i++)
		ret = find_of(session, session->tasks.pids[i], lowest_fd);
	return ret;
}

int kfd_files_compare(pid_t pid, int number, int fd)
{
	long order = syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, fd, number);

	if (order < 0)
		return errno == EBADF ? 0 : -errno;
	return order == 0;
}

int kfd_files_has(pid_t pid, int fd)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int number;
	int ret = proc_open_fds(pid, &stream);

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = kfd_files_compare(pid, number, fd);
	return ret;
}

/* 1, 0 or -errno. */
static int has_kfd(pid_t pid, DIR *stream)
{
	int number, ret = 0;

	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = is_kfd(pid, number);
	return ret;
}

/* The root of the tree of the first task that has the file @shown, or 0 if no task has it. */
static int find_root(const struct pid_list *tasks, int shown, pid_t *ret_root)
{
	int ret = 0;

	*ret_root = 0;
	for (size_t i = 0; !ret && i < tasks->count; i++) {
		ret = kfd_files_has(tasks->pids[i], shown);
		if (ret > 0)
			ret = proc_find_root(tasks->pids[i], ret_root);
		if (*ret_root)
			break;
	}
	return ret;
}

int kfd_files_list_tree(int shown, struct pid_list *ret_tasks)
{
	_cleanup_(pid_list_done) struct pid_list traced = { 0 };
	pid_t root = 0, found;
	int ret = proc_list_tracees(&traced);

	if (!ret)
		ret = find_root(&traced, shown, &root);
	for (size_t i = 0; !ret && i < traced.count; i++) {
		found = 0;
		ret = root ? proc_find_root(traced.pids[i], &found) : 0;
		if (!ret && found == root)
			ret = pid_list_add(ret_tasks, traced.pids[i]);
	}
	return ret;
}

static int list_files(struct dump_session *session, int shown)
{
	int ret;

	(void)nofile_raise(KFD_FILES_HIGHEST_FD, &session->old_limit);
	session->tasks_are_named = session->tasks.count;
	ret = session->tasks_are_named ? 0 : kfd_files_list_tree(shown, &session->tasks);
	return ret < 0 ? ret : kfd_files_find(session, HOST_LOWEST_FD);
}

int kfd_files_list(struct dump_session *session, int shown)
{
	int ret = session->files_are_listed ? 0 : list_files(session, shown);

	session->files_are_listed = !ret;
	if (ret == -ENOSYS || ret == -EPERM)
		return log_error(
			ret,
			"processes: cannot get their files of /dev/kfd, which takes the system calls pidfd_getfd and kcmp; allow both to CRIU (a seccomp filter may forbid them)");
	/* EINVAL: F_DUPFD cannot give a number beyond the limit. */
	if (ret == -EINVAL || ret == -EMFILE)
		return log_error(
			ret,
			"processes: cannot list their files of /dev/kfd, for which the plugin takes descriptors from %d on; raise the hard limit of CRIU's open files (ulimit -Hn, LimitNOFILE)",
			HOST_LOWEST_FD);
	return ret < 0 ? log_error(ret, "processes: cannot list their files of /dev/kfd") : 0;
}

/* Marks the node of each GPU whose render node the process has open. */
static int mark_gpus(pid_t pid, const struct topology *topology, bool *is_open)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int number, ret = proc_open_fds(pid, &stream);

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	while (!ret && proc_next_fd(stream, &number, &ret)) {
		const struct topology_node *gpu;

		ret = render_node_find_open(topology, pid, number, &gpu);
		if (gpu)
			is_open[gpu - topology->nodes] = true;
	}
	return ret;
}

int kfd_files_find_gpus(const struct pid_list *tasks, const struct topology *topology,
			bool *ret_open)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < tasks->count; i++)
		ret = mark_gpus(tasks->pids[i], topology, ret_open);
	return ret;
}

static int is_gpu(const struct topology *topology, dev_t device)
{
	const struct stat stat = { .st_mode = S_IFCHR, .st_rdev = device };

	return render_node_find_gpu(topology, device) ? 1 : kfd_is_file(&stat);
}

static int maps_gpu(pid_t pid, const struct topology *topology)
{
	_cleanup_free_ struct proc_mapping *mappings = NULL;
	size_t count;
	int ret = proc_list_mappings(pid, &mappings, &count);

	if (ret < 0)
		return ret;
	for (size_t i = 0; !ret && i < count; i++)
		ret = is_gpu(topology, mappings[i].device);
	return ret;
}

/* Whether the process maps a GPU and does not have /dev/kfd open: 1, 0 or -errno. A process that
 * has ended does not. */
static int maps_without_kfd(pid_t pid, const struct topology *topology)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int ret = proc_open_fds(pid, &stream);

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	ret = has_kfd(pid, stream);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = maps_gpu(pid, topology);
	return ret == -ENOENT || ret == -ESRCH ? 0 : ret;
}

int kfd_files_check_mappers(const struct dump_session *session)
{
	_cleanup_(pid_list_done) struct pid_list traced = { 0 };
	const struct pid_list *tasks = session->tasks.count ? &session->tasks : &traced;
	pid_t pid = 0;
	int ret = session->tasks.count ? 0 : proc_list_tracees(&traced);

	for (size_t i = 0; !ret && i < tasks->count; i++) {
		pid = tasks->pids[i];
		ret = maps_without_kfd(pid, &session->topology);
	}
	if (ret < 0)
		return log_error(ret, "mappings: cannot list those of all processes");
	return ret ? preflight_refuse(session, DUMP_HAS_NO_KFD_FILE, "process %d:", pid) : 0;
}
