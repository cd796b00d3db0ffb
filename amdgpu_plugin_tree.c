// SPDX-License-Identifier: GPL-2.0-only
/* Looks through the descriptors of tracees. What is done with the files is the dump's business. */
#include "amdgpu_plugin_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amdgpu_plugin_kfd.h"
#include "amdgpu_plugin_proc.h"
#include "amdgpu_plugin_util.h"

/* 0: the same; 1, 2, 3: another, as the kernel orders them. */
static long compare_files(int one, int other)
{
	pid_t self = getpid();

	return syscall(SYS_kcmp, self, self, KCMP_FILE, one, other);
}

int tree_is_same_file(int one, int other)
{
	long order = compare_files(one, other);

	return order < 0 ? -errno : order == 0;
}

void tree_files_done(struct tree_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		cleanup_close(&files->list[i].fd);
	free(files->list);
	*files = (struct tree_files){ 0 };
}

/* 1, 0 or -errno. */
static int is_known(const struct tree_files *files, int fd)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++)
		ret = tree_is_same_file(files->list[i].fd, fd);
	return ret;
}

static int add_file(struct tree_files *files, int fd, pid_t pid)
{
	struct tree_file *grown;

	grown = realloc(files->list, (files->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	files->list = grown;
	grown[files->count++] = (struct tree_file){ .fd = fd, .pid = pid };
	return 0;
}

/* Looked at without being opened: an open of a device is an act. 1, 0, or -errno where it is we who
 * lack something; what cannot be looked at, being closed by now or on a file system that does not
 * let us, is no device of KFD's. */
static int is_kfd(pid_t pid, int number)
{
	_cleanup_close_ int fd = -1;
	struct stat stat;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		return fstat(fd, &stat) < 0 ? 0 : kfd_is_file(&stat);
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
}

static int take_file(struct tree_files *files, int pidfd, pid_t pid, int number, int lowest_fd)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	int ret;

	if (fd < 0)
		return -errno;
	if (compare_files(fd, fd) < 0)
		return -errno;
	ret = is_known(files, fd);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = fd_move_up(&fd, lowest_fd);
	if (!ret)
		ret = add_file(files, fd, pid);
	if (!ret)
		(void)take_fd(&fd);
	return ret;
}

static int find_in(struct tree_files *files, pid_t pid, DIR *stream, int lowest_fd)
{
	_cleanup_close_ int pidfd = -1;
	struct dirent *entry;
	int ret = 0;

	while (!ret && (entry = next_entry(stream, &ret))) {
		/* NOLINTNEXTLINE(cert-err34-c): the kernel's numbers */
		int number = atoi(entry->d_name);
		int found = entry->d_name[0] == '.' ? 0 : is_kfd(pid, number);

		if (found > 0 && pidfd < 0) {
			pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
			found = pidfd < 0 ? -errno : 1;
		}
		ret = found > 0 ? take_file(files, pidfd, pid, number, lowest_fd) : found;
	}
	return ret;
}

/* A process that has ended has no descriptors any more. */
static int find_of(struct tree_files *files, pid_t pid, int lowest_fd)
{
	char path[64];
	DIR *stream;
	int ret;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	stream = opendir(path);
	if (!stream)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	ret = find_in(files, pid, stream, lowest_fd);
	(void)closedir(stream);
	return ret;
}

int tree_find_kfd(int lowest_fd, struct tree_files *ret_files)
{
	_cleanup_(tree_files_done) struct tree_files files = { 0 };
	_cleanup_free_ pid_t *pids = NULL;
	size_t count;
	int ret;

	ret = proc_list_tracees(&pids, &count);
	for (size_t i = 0; !ret && i < count; i++)
		ret = find_of(&files, pids[i], lowest_fd);
	if (ret < 0)
		return ret;
	*ret_files = files;
	files = (struct tree_files){ 0 };
	return 0;
}
