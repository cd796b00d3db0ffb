// SPDX-License-Identifier: GPL-2.0-only
/* Reads how many references a dma-buf has, and lists the descriptors of all tasks.
 * shared_bos.c knows the BOs of the dump. */
#include "dump/dmabuf_holders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"

/* That of a dma-buf has eight lines, and the longest is its name of at most 31 bytes
 * (dma_buf_show_fdinfo() in drivers/dma-buf/dma-buf.c). */
#define FDINFO_SIZE_MAX 1024

static int compare_files(const void *a, const void *b)
{
	const struct dmabuf_file *one = a, *other = b;

	return ORDER(one->device, other->device) ?: ORDER(one->inode, other->inode);
}

static int add_file(struct dmabuf_files *files, pid_t pid, int number)
{
	struct dmabuf_file file;
	struct stat stat;
	int ret = proc_stat_fd(pid, number, &stat);

	if (ret <= 0 || stat.st_mode & S_IFMT)
		return ret < 0 ? ret : 0;
	file = (struct dmabuf_file){
		.device = stat.st_dev, .inode = stat.st_ino, .pid = pid, .number = number
	};
	return array_append(&files->list, &files->count, sizeof(file), &file);
}

static int add_files(struct dmabuf_files *files, pid_t pid)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int number;
	int ret = proc_open_fds(pid, &stream);

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = add_file(files, pid, number);
	return ret;
}

void dmabuf_holders_done(struct dmabuf_files *files)
{
	free(files->list);
	*files = (struct dmabuf_files){ 0 };
}

static struct dmabuf_files take_files(struct dmabuf_files *files)
{
	struct dmabuf_files taken = *files;

	*files = (struct dmabuf_files){ 0 };
	return taken;
}

static int add_own_file(struct dmabuf_files *files, int number)
{
	struct dmabuf_file file = { .number = number };
	struct stat stat;

	if (fstat(number, &stat) < 0 || stat.st_mode & S_IFMT)
		return 0;
	file.device = stat.st_dev;
	file.inode = stat.st_ino;
	return array_append(&files->list, &files->count, sizeof(file), &file);
}

static void sort(struct dmabuf_files *files)
{
	if (files->count)
		qsort(files->list, files->count, sizeof(*files->list), compare_files);
}

int dmabuf_holders_list_own(struct dmabuf_files *ret_files)
{
	_cleanup_(dmabuf_holders_done) struct dmabuf_files files = { 0 };
	_cleanup_closedir_ DIR *stream = opendir("/proc/self/fd");
	int number, ret = stream ? 0 : -errno;

	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = add_own_file(&files, number);
	if (ret < 0)
		return ret;
	sort(&files);
	*ret_files = take_files(&files);
	return 0;
}

int dmabuf_holders_list(const struct pid_list *tasks, struct dmabuf_files *ret_files)
{
	_cleanup_(dmabuf_holders_done) struct dmabuf_files files = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < tasks->count; i++)
		ret = add_files(&files, tasks->pids[i]);
	if (ret < 0)
		return ret;
	sort(&files);
	*ret_files = take_files(&files);
	return 0;
}

uint32_t dmabuf_holders_find(const struct dmabuf_files *files, uint64_t device, uint64_t inode,
			     size_t *ret_first)
{
	const struct dmabuf_file wanted = { .device = device, .inode = inode };
	size_t first =
		lower_bound(&wanted, files->list, files->count, sizeof(wanted), compare_files);
	uint32_t count = 0;

	*ret_first = first;
	while (first + count < files->count && !compare_files(&files->list[first + count], &wanted))
		count++;
	return count;
}

int dmabuf_holders_open_fdinfo(void)
{
	return fd_open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY);
}

int dmabuf_holders_count(int fdinfo, int fd, uint64_t *ret_count)
{
	static const char field[] = "\ncount:";
	_cleanup_close_ int file = -1;
	char text[FDINFO_SIZE_MAX] = "", name[16];
	const char *found;
	int ret;

	(void)snprintf(name, sizeof(name), "%d", fd);
	file = fd_open_at(fdinfo, name, O_RDONLY);
	ret = file < 0 ? file : pread_up_to(file, text, 1, sizeof(text) - 1, 0);
	if (ret < 0)
		return ret;
	found = strstr(text, field);
	*ret_count = found ? strtoull(found + strlen(field), NULL, 10) : 0;
	return 0;
}

static uint64_t count_certain(const struct dmabuf_holders *holders)
{
	return holders->bos + holders->descriptors + holders->other_offsets + holders->files;
}

bool dmabuf_holders_are_counted(const struct dmabuf_holders *holders)
{
	return holders->references >= count_certain(holders);
}

bool dmabuf_holders_are_known(const struct dmabuf_holders *holders)
{
	/* The object and KFD's own file hold the dma-buf together, or both do not. */
	const uint64_t pairs = 2 * (1 + holders->other_offsets);
	const uint64_t certain = count_certain(holders);
	uint64_t rest;

	if (holders->references <= certain)
		return true;
	rest = holders->references - certain;
	if (rest > pairs + holders->attachments)
		return false;
	return holders->attachments || holders->files || rest % 2 == 0;
}
