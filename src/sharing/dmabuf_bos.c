// SPDX-License-Identifier: GPL-2.0-only
/* Finds the BOs of open dma-bufs, by inode or by an import of the plugin's own. */
#include "sharing/dmabuf_bos.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "kernel/render_node_gem.h"
#include "sharing/object_rules.h"
#include "sharing/object_table.h"
#include "sharing/shared_bos.h"

/* The mmap offset of a BO. */
struct place {
	uint64_t device;
	uint64_t offset;
};

/* A job may have a hundred thousand BOs and thousands of open dma-bufs, so each BO looks for its
 * files, which are sorted. */
static void find_by_inode(struct shared_bos *shared)
{
	for (size_t i = 0; i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		size_t first;

		bo->is_open =
			dmabuf_holders_find(&shared->files, bo->file_system, bo->inode, &first);
		if (bo->is_open)
			shared->files.list[first].is_dmabuf = true;
	}
}

/* A BO of the dump on @device with @size bytes, and with @offset unless that is 0. */
static bool has_bo_like(const struct shared_bos *shared, uint64_t device, uint64_t size,
			uint64_t offset)
{
	for (size_t i = 0; i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];

		if (bo->device == device && bo->size == size && (!offset || bo->offset == offset))
			return true;
	}
	return false;
}

static bool is_out_of_resources(int ret)
{
	return ret == -ENOMEM || ret == -EMFILE || ret == -ENFILE;
}

/* Imports the dma-buf into a file of @gpu, which may be the GPU of the BO: 1; 0: it is not; or
 * -errno. */
static int try_gpu(const struct shared_bos *shared, const struct topology_node *gpu, int dmabuf_fd,
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
	if (!bo.mmap_offset || !has_bo_like(shared, device, size, bo.mmap_offset))
		return 0;
	file->has_bo = true;
	file->bo_device = device;
	file->bo_offset = bo.mmap_offset;
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

static int try_gpus(const struct shared_bos *shared, const struct topology *topology, int dmabuf_fd,
		    struct dmabuf_file *file)
{
	const off_t size = lseek(dmabuf_fd, 0, SEEK_END);
	int ret = 0;

	for (size_t i = 0; size > 0 && !ret && i < topology->num_nodes; i++) {
		const struct topology_node *gpu = &topology->nodes[i];

		if (gpu->gpu_id && is_first_of_device(topology, i) &&
		    has_bo_like(shared, topology_pci_device(gpu), (uint64_t)size, 0))
			ret = try_gpu(shared, gpu, dmabuf_fd, (uint64_t)size, file);
	}
	return ret;
}

/* Files without a type are also eventfds and the like, which the driver distinguishes from
 * dma-bufs. */
static int find_by_import(const struct shared_bos *shared, const struct topology *topology,
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

static bool is_same_file(const struct dmabuf_file *one, const struct dmabuf_file *other)
{
	return one->device == other->device && one->inode == other->inode;
}

/* Those of BOs with the same inode are known. Descriptors of one file follow each other. */
static int find_others(struct shared_bos *shared, const struct topology *topology)
{
	struct dmabuf_file *list = shared->files.list;
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < shared->files.count; i++) {
		if (i && is_same_file(&list[i - 1], &list[i])) {
			list[i].is_dmabuf = list[i - 1].is_dmabuf;
			list[i].has_bo = list[i - 1].has_bo;
			list[i].bo_device = list[i - 1].bo_device;
			list[i].bo_offset = list[i - 1].bo_offset;
		} else if (!list[i].is_dmabuf) {
			ret = find_by_import(shared, topology, &list[i]);
		}
	}
	return ret < 0 ? ret : 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	return ORDER(one->device, other->device) ?: ORDER(one->offset, other->offset);
}

/* The places of BOs that imports have shown, in order. The caller frees them. */
static int list_places(const struct dmabuf_files *files, struct place **ret_places,
		       size_t *ret_count)
{
	struct place *places = calloc(files->count + 1, sizeof(*places));
	size_t count = 0;

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < files->count; i++) {
		if (files->list[i].has_bo)
			places[count++] = (struct place){ files->list[i].bo_device,
							  files->list[i].bo_offset };
	}
	qsort(places, count, sizeof(*places), compare_places);
	*ret_places = places;
	*ret_count = count;
	return 0;
}

static int note_open(struct shared_bos *shared)
{
	_cleanup_free_ struct place *places = NULL;
	size_t count;
	int ret = list_places(&shared->files, &places, &count);

	for (size_t i = 0; !ret && count && i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		const struct place wanted = { bo->device, bo->offset };

		bo->is_open |=
			bsearch(&wanted, places, count, sizeof(wanted), compare_places) != NULL;
	}
	return ret;
}

int dmabuf_bos_find(struct shared_bos *shared, const struct topology *topology)
{
	int ret;

	find_by_inode(shared);
	ret = find_others(shared, topology);
	return ret < 0 ? ret : note_open(shared);
}

const struct shared_bo *dmabuf_bos_find_object(const struct shared_bos *shared,
					       const struct stat *stat)
{
	struct shared_handle name = { .is_import = true, .key = stat->st_ino };
	const struct dmabuf_file *file;
	const struct shared_bo *bo;
	size_t first;

	if (dmabuf_holders_find(&shared->files, stat->st_dev, stat->st_ino, &first)) {
		file = &shared->files.list[first];
		if (file->has_bo)
			name = (struct shared_handle){ .device = file->bo_device,
						       .key = file->bo_offset };
	}
	bo = object_table_find(shared, &name);
	return bo && (!name.is_import || bo->file_system == stat->st_dev) ? bo : NULL;
}
