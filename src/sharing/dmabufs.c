// SPDX-License-Identifier: GPL-2.0-only
/* Lists the descriptors of all tasks, finds the BOs of dma-bufs by inode or by an import of the
 * plugin's own, and reads how many references a dma-buf has. shared_bos.c knows the BOs. */
#include "sharing/dmabufs.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "sharing/object_rules.h"

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

static int add_files(struct dmabuf_files *files, DIR *stream, pid_t pid)
{
	int number, ret = 0;

	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = add_file(files, pid, number);
	return ret;
}

void dmabufs_done(struct dmabuf_files *files)
{
	free(files->list);
	*files = (struct dmabuf_files){ 0 };
}

static int end_list(struct dmabuf_files *files, int ret, struct dmabuf_files *ret_files)
{
	if (ret < 0)
		return ret;
	if (files->count)
		qsort(files->list, files->count, sizeof(*files->list), compare_files);
	*ret_files = take_struct(*files);
	return 0;
}

int dmabufs_list(const struct pid_list *tasks, struct dmabuf_files *ret_files)
{
	_cleanup_(dmabufs_done) struct dmabuf_files files = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < tasks->count; i++) {
		_cleanup_closedir_ DIR *stream = NULL;

		ret = proc_open_fds(tasks->pids[i], &stream);
		ret = stream ? add_files(&files, stream, tasks->pids[i]) : ret == -ESRCH ? 0 : ret;
	}
	return end_list(&files, ret, ret_files);
}

int dmabufs_list_own(struct dmabuf_files *ret_files)
{
	_cleanup_(dmabufs_done) struct dmabuf_files files = { 0 };
	_cleanup_closedir_ DIR *stream = opendir("/proc/self/fd");

	return end_list(&files, stream ? add_files(&files, stream, getpid()) : -errno, ret_files);
}

uint32_t dmabufs_count(const struct dmabuf_files *files, uint64_t device, uint64_t inode,
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

/* A job may have a hundred thousand BOs and thousands of open dma-bufs, so each BO looks for its
 * files, which are sorted. */
static void find_by_inode(struct shared_bos *shared)
{
	for (size_t i = 0; i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		size_t first;

		bo->is_open = dmabufs_count(&shared->files, bo->file_system, bo->inode, &first);
		if (bo->is_open)
			shared->files.list[first].is_dmabuf = true;
	}
}

/* Whether a BO of the dump on @device has @size bytes, and @offset unless that is 0. The BOs with
 * the offset are open. */
static bool find_like(struct shared_bos *shared, uint64_t device, uint64_t size, uint64_t offset)
{
	bool found = false;

	for (size_t i = 0; i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];

		if (bo->device != device || bo->size != size || (offset && bo->offset != offset))
			continue;
		bo->is_open |= offset != 0;
		found = true;
	}
	return found;
}

static bool is_out_of_resources(int ret)
{
	return ret == -ENOMEM || ret == -EMFILE || ret == -ENFILE;
}

/* Imports the dma-buf into a file of @gpu, which may be the GPU of the BO.
 * Return: 1 if it is, 0 if it is not, or -errno. */
static int try_gpu(struct shared_bos *shared, const struct topology_node *gpu, int dmabuf_fd,
		   uint64_t size, struct dmabuf_file *file)
{
	const uint64_t device = topology_pci_device(gpu);
	_cleanup_close_ int fd = -1;
	struct render_bo bo = { 0 };
	int ret = render_node_open(gpu->drm_render_minor, HOST_LOWEST_FD, &fd);

	if (!ret)
		ret = render_node_gem_read(fd, dmabuf_fd, &bo);
	if (ret < 0)
		return is_out_of_resources(ret) ? ret : 0;
	if (!bo.mmap_offset)
		log_info(
			"process %d: descriptor %d: the kernel does not report which BO of renderD%u this dma-buf is, because the CPU may not map it",
			file->pid, file->number, gpu->drm_render_minor);
	if (!bo.mmap_offset || !find_like(shared, device, size, bo.mmap_offset))
		return 0;
	file->has_bo = true;
	file->bo = (struct bo_name){ .device = device, .number = bo.mmap_offset };
	return 1;
}

/* Partitions of a device have one space of offsets, so one of them is enough. */
static bool is_first_of_device(const struct topology *topology, size_t index)
{
	const uint64_t device = topology_pci_device(&topology->nodes[index]);

	for (size_t i = 0; i < index; i++) {
		if (topology->nodes[i].gpu_id && topology_pci_device(&topology->nodes[i]) == device)
			return false;
	}
	return true;
}

static int try_gpus(struct shared_bos *shared, const struct topology *topology, int dmabuf_fd,
		    struct dmabuf_file *file)
{
	const off_t size = lseek(dmabuf_fd, 0, SEEK_END);
	int ret = 0;

	for (size_t i = 0; size > 0 && !ret && i < topology->num_nodes; i++) {
		const struct topology_node *gpu = &topology->nodes[i];

		if (gpu->gpu_id && is_first_of_device(topology, i) &&
		    find_like(shared, topology_pci_device(gpu), (uint64_t)size, 0))
			ret = try_gpu(shared, gpu, dmabuf_fd, (uint64_t)size, file);
	}
	return ret;
}

/* Files without a type are also eventfds and the like, which the driver distinguishes from
 * dma-bufs. */
static int find_by_import(struct shared_bos *shared, const struct topology *topology,
			  struct dmabuf_file *file)
{
	_cleanup_close_ int fd = -1;
	int ret = proc_get_fd(file->pid, file->number, &fd);

	if (ret < 0)
		return is_out_of_resources(ret) ? ret : 0;
	ret = kfd_is_dmabuf(fd);
	file->is_dmabuf = ret > 0;
	return ret > 0 ? try_gpus(shared, topology, fd, file) : ret;
}

/* Those of BOs with the same inode are known. Descriptors of one file follow each other. */
static int find_others(struct shared_bos *shared, const struct topology *topology)
{
	struct dmabuf_file *list = shared->files.list;
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < shared->files.count; i++) {
		if (i && !compare_files(&list[i - 1], &list[i])) {
			list[i].is_dmabuf = list[i - 1].is_dmabuf;
			list[i].has_bo = list[i - 1].has_bo;
			list[i].bo = list[i - 1].bo;
		} else if (!list[i].is_dmabuf) {
			ret = find_by_import(shared, topology, &list[i]);
		}
	}
	return ret < 0 ? ret : 0;
}

int dmabufs_find_bos(struct shared_bos *shared, const struct topology *topology)
{
	find_by_inode(shared);
	return find_others(shared, topology);
}

struct bo_name dmabufs_name(const struct dmabuf_files *files, const struct stat *stat)
{
	size_t first;

	if (dmabufs_count(files, stat->st_dev, stat->st_ino, &first) && files->list[first].has_bo)
		return files->list[first].bo;
	return (struct bo_name){ .is_inode = true, .number = stat->st_ino };
}

int dmabufs_count_references(int fdinfo, int fd, uint64_t *ret_count)
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

/* How many references all holders have. */
struct references {
	uint64_t always;
	/* Those of an object and of KFD's own file of its device (drm_gem_prime_handle_to_dmabuf()
	 * in drm_prime.c). Both go when a process frees an import, because that deletes the handle
	 * which they share. */
	uint64_t together;
	uint64_t perhaps;
};

/* With the function that takes them, in Linux 6.12 below drivers/gpu/drm, and which has done so
 * since Linux 6.8. */
static struct references sum_up(const struct dmabuf_holders *holders)
{
	/* kfd_mem_export_dmabuf(), which CHECKPOINT calls for all BOs, or import_obj_create() in
	 * amdgpu_amdkfd_gpuvm.c. With AMD's out-of-tree driver also share handles (kfd_ipc.c). */
	uint64_t always = holders->bos;

	/* Each is an open file of it. */
	always += holders->descriptors;
	/* A render file with a GEM handle of the object: drm_gem_prime_fd_to_handle(). */
	always += holders->files;
	/* An attachment, and below an object and KFD's file of the other device
	 * (amdgpu_gem_prime_import() in amdgpu_dma_buf.c). */
	always += holders->other_offsets;
	return (struct references){
		.always = always,
		/* The object itself, and KFD's file of its device. */
		.together = 2 + 2 * holders->other_offsets,
		/* A GPU that maps the BO through PCIe: kfd_mem_attach(). */
		.perhaps = holders->attachments,
	};
}

bool dmabufs_are_counted(const struct dmabuf_holders *holders)
{
	return holders->references >= sum_up(holders).always;
}

bool dmabufs_are_known(const struct dmabuf_holders *holders)
{
	const struct references sum = sum_up(holders);
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
