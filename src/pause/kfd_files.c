// SPDX-License-Identifier: GPL-2.0-only
/* Finds the /dev/kfd files and the GPUs of tracees through /proc and pidfd_getfd(). pause.c pauses
 * the owners of the files. */
#include "pause/kfd_files.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dump.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"

void kfd_files_done(struct tree_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		fd_close(&files->list[i].fd);
	free(files->list);
	*files = (struct tree_files){ 0 };
}

/* The task whose descriptors are being searched. */
struct holder {
	pid_t pid;
	pid_t vpid;
	int pidfd;
};

struct search {
	struct tree_files files;
	int lowest_fd;
};

/* *@ret_file: the listed file that is the file of @fd, or NULL if @fd is not listed. */
static int find_file(const struct tree_files *files, int fd, struct tree_file **ret_file)
{
	*ret_file = NULL;
	for (size_t i = 0; i < files->count; i++) {
		int ret = fd_is_same(files->list[i].fd, fd);

		if (ret < 0)
			return ret;
		if (ret) {
			*ret_file = &files->list[i];
			return 0;
		}
	}
	return 0;
}

static int add_file(struct tree_files *files, int fd, const struct holder *holder)
{
	struct tree_file file = {
		.fd = fd,
		.pid = holder->pid,
		.reopen_vpid = holder->vpid,
	};

	return array_append(&files->list, &files->count, sizeof(file), &file);
}

/* Whether descriptor @number of the task is /dev/kfd: 1, 0, or -errno if the plugin lacks
 * descriptors or memory. */
static int is_kfd(pid_t pid, int number)
{
	struct stat stat;
	int ret = proc_stat_fd(pid, number, &stat);

	return ret > 0 ? kfd_is_file(&stat) : ret;
}

static int get_file(struct search *search, const struct holder *holder, int number)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_getfd, holder->pidfd, number, 0);
	struct tree_file *known;
	int ret;

	/* A process that runs on may have closed the file, or have ended. */
	if (fd < 0)
		return errno == EBADF || errno == ESRCH ? 0 : -errno;
	ret = fd_is_same(fd, fd);
	if (ret < 0)
		return ret;
	ret = find_file(&search->files, fd, &known);
	if (ret < 0)
		return ret;
	if (known) {
		if (holder->vpid < known->reopen_vpid)
			known->reopen_vpid = holder->vpid;
		return 0;
	}
	ret = fd_move_up(&fd, search->lowest_fd);
	if (!ret)
		ret = add_file(&search->files, fd, holder);
	if (!ret)
		(void)take_fd(&fd);
	return ret;
}

static int identify_holder(struct holder *holder)
{
	int ret = proc_vpid(holder->pid, &holder->vpid);

	if (ret < 0)
		return ret;
	holder->pidfd = (int)syscall(SYS_pidfd_open, holder->pid, 0);
	return holder->pidfd < 0 ? -errno : 0;
}

static void holder_done(struct holder *holder)
{
	fd_close(&holder->pidfd);
}

static int find_in(struct search *search, pid_t pid, DIR *stream)
{
	_cleanup_(holder_done) struct holder holder = { .pid = pid, .pidfd = -1 };
	int number, ret = 0;

	while (!ret && proc_next_fd(stream, &number, &ret)) {
		ret = is_kfd(pid, number);
		if (ret <= 0)
			continue;
		ret = holder.pidfd < 0 ? identify_holder(&holder) : 0;
		if (!ret)
			ret = get_file(search, &holder, number);
	}
	return ret;
}

static int find_of(struct search *search, pid_t pid)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int ret = proc_open_fds(pid, &stream);

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	return find_in(search, pid, stream);
}

static void search_done(struct search *search)
{
	kfd_files_done(&search->files);
}

int kfd_files_find(const struct pid_list *tasks, int lowest_fd, struct tree_files *ret_files)
{
	_cleanup_(search_done) struct search search = { .lowest_fd = lowest_fd };
	int ret = 0;

	for (size_t i = 0; !ret && i < tasks->count; i++)
		ret = find_of(&search, tasks->pids[i]);
	if (ret < 0)
		return ret;
	*ret_files = search.files;
	search.files = (struct tree_files){ 0 };
	return 0;
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

/* *@ret_maps: the process maps a GPU and does not have /dev/kfd open. A process that has ended does
 * not. */
static int check_mapper(pid_t pid, const struct topology *topology, bool *ret_maps)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int ret = proc_open_fds(pid, &stream);

	*ret_maps = false;
	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	ret = has_kfd(pid, stream);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = maps_gpu(pid, topology);
	*ret_maps = ret > 0;
	return ret >= 0 || ret == -ENOENT || ret == -ESRCH ? 0 : ret;
}

/* *@ret_pid: the first of @tasks that does, or 0 if no task does. */
static int find_mapper(const struct pid_list *tasks, const struct topology *topology,
		       pid_t *ret_pid)
{
	bool maps = false;
	int ret = 0;

	*ret_pid = 0;
	for (size_t i = 0; !ret && !maps && i < tasks->count; i++) {
		ret = check_mapper(tasks->pids[i], topology, &maps);
		if (maps)
			*ret_pid = tasks->pids[i];
	}
	return ret;
}

int kfd_files_check_mappers(const struct dump_session *session)
{
	_cleanup_(pid_list_done) struct pid_list traced = { 0 };
	const struct pid_list *tasks = session->tasks.count ? &session->tasks : &traced;
	pid_t pid = 0;
	int ret = session->tasks.count ? 0 : proc_list_tracees(&traced);

	if (!ret)
		ret = find_mapper(tasks, &session->topology, &pid);
	if (ret < 0)
		return log_error(ret, "mappings: cannot list those of all processes");
	return pid ? preflight_refuse(session, DUMP_HAS_NO_KFD_FILE, "process %d:", pid) : 0;
}
