// SPDX-License-Identifier: GPL-2.0-only
/* Reads how many references a dma-buf has, and lists the descriptors of all tasks.
 * shared_bos.c knows the BOs of the dump. */
#include "sharing/dmabuf_holders.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
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

static void sort(struct dmabuf_files *files, struct dmabuf_files *ret_files)
{
	if (files->count)
		qsort(files->list, files->count, sizeof(*files->list), compare_files);
	*ret_files = take_struct(*files);
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
	sort(&files, ret_files);
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
	sort(&files, ret_files);
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

/* What holds a dma-buf, and how many references each holder has: the function that takes them, in
 * Linux 6.12 below drivers/gpu/drm, and which has done so since Linux 6.8. */
static const struct holder {
	/* The number of these holders, in struct dmabuf_holders. */
	size_t number;
	uint64_t always;
	/* Those of an object and of KFD's own file of its device (drm_gem_prime_handle_to_dmabuf()
	 * in drm_prime.c). Both go when a process frees an import, because that deletes the handle
	 * which they share. */
	uint64_t together;
	uint64_t perhaps;
} table[] = {
#define HOLDER(name, ...)                                          \
	{                                                          \
		offsetof(struct dmabuf_holders, name), __VA_ARGS__ \
	}
	/* kfd_mem_export_dmabuf(), which CHECKPOINT calls for all BOs, or import_obj_create() in
	 * amdgpu_amdkfd_gpuvm.c. With AMD's out-of-tree driver also share handles (kfd_ipc.c). */
	HOLDER(bos, 1, 0, 0),
	/* Each is an open file of it. */
	HOLDER(descriptors, 1, 0, 0),
	/* An attachment, and an object and KFD's file of the other device
	 * (amdgpu_gem_prime_import() in amdgpu_dma_buf.c). */
	HOLDER(other_offsets, 1, 2, 0),
	/* A render file with a GEM handle of the object: drm_gem_prime_fd_to_handle(). */
	HOLDER(files, 1, 0, 0),
	/* A GPU that maps the BO through PCIe: kfd_mem_attach(). */
	HOLDER(attachments, 0, 0, 1),
#undef HOLDER
};

/* The object itself, and KFD's file of its device. */
#define OWN_TOGETHER 2

static struct holder sum_up(const struct dmabuf_holders *holders)
{
	struct holder sum = { .together = OWN_TOGETHER };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *field = (const char *)holders + table[i].number;
		uint64_t number = *(const uint64_t *)(const void *)field;

		sum.always += number * table[i].always;
		sum.together += number * table[i].together;
		sum.perhaps += number * table[i].perhaps;
	}
	return sum;
}

bool dmabuf_holders_are_counted(const struct dmabuf_holders *holders)
{
	return holders->references >= sum_up(holders).always;
}

bool dmabuf_holders_are_known(const struct dmabuf_holders *holders)
{
	const struct holder sum = sum_up(holders);
	uint64_t rest;

	if (holders->references <= sum.always)
		return true;
	rest = holders->references - sum.always;
	if (rest > sum.together + sum.perhaps)
		return false;
	/* An odd rest is the only trace of a single stranger that took the place of a pair of
	 * @together. The object has its reference without KFD's file if a render file has a handle
	 * of it. */
	return sum.perhaps || holders->files || rest % 2 == 0;
}
