// SPDX-License-Identifier: GPL-2.0-only
/* Lists the GEM handles of a process, and finds the BOs of KFD that they name. render_node.c has
 * the calls. */
#include "preflight/gem_list.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "preflight/bo_index.h"
#include "preflight/kfd_process.h"
#include "preflight/preflight.h"

/* The file whose handles are listed, and what the file's GPU and the process are. */
struct saving {
	const struct dumped_process *process;
	const struct gem_file *file;
	uint32_t gpu_id;
};

void gem_list_files_done(struct gem_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		fd_close(&files->list[i].fd);
		free(files->list[i].handles);
	}
	free(files->list);
	*files = (struct gem_files){ 0 };
}

void gem_list_saved_done(struct gem_saved_list *saved)
{
	for (size_t i = 0; i < saved->count; i++) {
		free(saved->list[i].mappings);
		free(saved->list[i].metadata);
	}
	free(saved->list);
	free(saved->foreign);
	*saved = (struct gem_saved_list){ 0 };
}

/* The key is 0, which no BO has, if the CPU may not map the object. */
static int read_key(int fd, const struct render_gem *gem, struct gem_named *named)
{
	int ret;

	named->handle = gem->handle;
	named->is_import = gem->flags & RENDER_GEM_IS_IMPORT;
	ret = named->is_import ? render_node_gem_inode(fd, gem->handle, &named->key)
			       : render_node_gem_offset(fd, gem->handle, &named->key);
	/* The CPU may not map some objects of graphics. */
	return ret == -EPERM ? 0 : ret;
}

int gem_list_read_file(struct gem_file *file)
{
	_cleanup_free_ struct render_gem *gems = NULL;
	size_t count = 0;
	int ret = render_node_gem_list(file->fd, &gems, &count);

	if (ret < 0)
		return ret;
	file->handles = calloc(count + 1, sizeof(*file->handles));
	if (!file->handles)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < count; i++)
		ret = read_key(file->fd, &gems[i], &file->handles[file->num_handles++]);
	return ret;
}

/* Whether one of @files is the open file @fd: 1, 0 or -errno. */
static int has_file(const struct gem_files *files, int fd)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++)
		ret = fd_is_same(files->list[i].fd, fd);
	return ret;
}

static int add_file(struct gem_files *files, const struct topology_node *gpu, int number, int *fd)
{
	struct gem_file file = { .fd = *fd, .number = number, .gpu = gpu };
	int ret = gem_list_read_file(&file);

	if (!ret)
		ret = array_append(&files->list, &files->count, sizeof(file), &file);
	if (ret < 0)
		free(file.handles);
	else
		(void)take_fd(fd);
	return ret;
}

/* Up to Linux 6.12 at least, the driver stops the queues of a process for 100 ms when a copy of a
 * file with their VM is closed: amdgpu_flush() waits for KFD's eviction fence. Linux 7.2 does not,
 * which lists the handles. */
static bool stops_queues(pid_t pid, int number, const struct topology_node *gpu)
{
	return !render_node_gem_can_list(gpu->drm_render_minor) &&
	       kfd_process_has_vm_in(pid, number);
}

static int add_descriptor(struct gem_files *files, pid_t pid, int number,
			  const struct topology_node *gpu)
{
	_cleanup_close_ int fd = -1;
	int ret = proc_get_fd(pid, number, &fd);

	if (ret < 0)
		return ret == -EPERM || ret == -ENOSYS || ret == -EBADF ? 0 : ret;
	ret = has_file(files, fd);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = fd_move_up(&fd, HOST_LOWEST_FD);
	return ret < 0 ? ret : add_file(files, gpu, number, &fd);
}

static int read_files(pid_t pid, const struct topology *topology, bool runs,
		      struct gem_files *ret_files)
{
	_cleanup_(gem_list_files_done) struct gem_files files = { 0 };
	_cleanup_closedir_ DIR *stream = NULL;
	int number;
	int ret = proc_open_fds(pid, &stream);

	while (!ret && proc_next_fd(stream, &number, &ret)) {
		const struct topology_node *gpu;

		ret = render_node_find_open(topology, pid, number, &gpu);
		if (!ret && gpu && !(runs && stops_queues(pid, number, gpu)))
			ret = add_descriptor(&files, pid, number, gpu);
	}
	if (ret < 0)
		return ret;
	*ret_files = take_struct(files);
	return 0;
}

int gem_list_read(pid_t pid, const struct topology *topology, struct gem_files *ret_files)
{
	return read_files(pid, topology, false, ret_files);
}

int gem_list_read_running(pid_t pid, const struct topology *topology, struct gem_files *ret_files)
{
	return read_files(pid, topology, true, ret_files);
}

static bool has_key(const struct gem_file *file, uint64_t key)
{
	for (size_t i = 0; i < file->num_handles; i++) {
		if (!file->handles[i].is_import && file->handles[i].key == key)
			return true;
	}
	return false;
}

static bool is_only_one(const struct gem_files *files, const struct gem_file *file)
{
	for (size_t i = 0; i < files->count; i++) {
		if (&files->list[i] != file && files->list[i].gpu == file->gpu &&
		    files->list[i].num_handles)
			return false;
	}
	return true;
}

/* Only the compute file can map the BOs of the process, but a file with a handle can map the
 * object, too. Without a BO that tells, the only file with handles is taken for the compute file:
 * programs use these handles through it (libhsakmt gives libdrm that file). */
static bool is_compute_file(const struct gem_files *files, const struct gem_file *file,
			    const struct dumped_gpu *gpu)
{
	if (gpu->has_bo && !has_key(file, gpu->bo_offset))
		return render_node_can_map(file->fd, gpu->bo_offset);
	return file->num_handles && is_only_one(files, file);
}

static const struct bo_index_entry *find_bo(const struct dumped_process *process,
					    const struct gem_file *file,
					    const struct gem_named *named)
{
	const struct bo_index *index = &process->bo_index;
	const struct bo_index_entry *bo;

	if (named->is_import)
		return bo_index_find_inode(index, named->key);
	bo = bo_index_find_offset(index, topology_pci_device(file->gpu), named->key);
	return bo && bo->offset == named->key ? bo : NULL;
}

/* Whether KFD maps BO @index on the file's GPU. Without a record that can be read: yes. */
static bool is_mapped_by_kfd(const struct saving *saving, uint32_t index)
{
	struct kfd_priv_bo_record record;

	if (kfd_priv_read_bo(&saving->process->priv, index, &record) < 0)
		return true;
	for (uint32_t i = 0; i < record.num_gpus; i++) {
		if (record.gpu_ids[i] == saving->gpu_id)
			return true;
	}
	return false;
}

/* KFD and GEM_VA enter mappings of an object in one list of the VM (kfd_mem_attach() in
 * amdgpu_amdkfd_gpuvm.c, 6.12 and 7.3), and RESTORE makes those of KFD. */
static bool is_of_kfd(const struct saving *saving, const struct gem_saved *saved,
		      const struct render_mapping *mapping)
{
	const uint64_t offset = saving->process->state.bos[saved->bo].offset;
	size_t count;
	const struct bo_index_entry *const *bos =
		bo_index_find_address(&saving->process->bo_index, mapping->addr, &count);

	for (size_t i = 0; !mapping->offset && i < count; i++) {
		if (bos[i]->size == mapping->size && bos[i]->offset == offset &&
		    is_mapped_by_kfd(saving, bos[i]->index))
			return true;
	}
	return false;
}

static int keep_mappings(const struct saving *saving, struct gem_saved *saved)
{
	size_t kept = 0;

	for (size_t i = 0; i < saved->num_mappings; i++) {
		const struct render_mapping *mapping = &saved->mappings[i];

		if (!render_node_gem_can_map(mapping))
			return preflight_refuse(
				saving->process->session, DUMP_HAS_GEM_OBJECTS,
				"%s: renderD%u, GEM handle %u with a mapping of flags 0x%" PRIx64
				" at 0x%" PRIx64 ",",
				saving->process->name, saving->file->gpu->drm_render_minor,
				saved->handle, mapping->flags, mapping->addr);
		if (saved->is_import || saved->bo == IMAGE_NO_BO ||
		    !is_of_kfd(saving, saved, mapping))
			saved->mappings[kept++] = *mapping;
	}
	saved->num_mappings = kept;
	return 0;
}

static int refuse_handle(const struct saving *saving, uint32_t handle, const char *what)
{
	return preflight_refuse(saving->process->session, DUMP_HAS_GEM_OBJECTS,
				"%s: renderD%u, GEM handle %u,%s", saving->process->name,
				saving->file->gpu->drm_render_minor, handle, what);
}

static int read_metadata(const struct saving *saving, struct gem_saved *saved)
{
	struct render_metadata metadata;
	int ret = render_node_gem_get_metadata(saving->file->fd, saved->handle, &metadata);

	if (!ret && metadata.size) {
		saved->metadata = malloc(sizeof(metadata));
		if (!saved->metadata)
			ret = -ENOMEM;
		else
			*saved->metadata = metadata;
	}
	return ret < 0 ? log_error(ret, "%s: renderD%u: cannot read the metadata of GEM handle %u",
				   saving->process->name, saving->file->gpu->drm_render_minor,
				   saved->handle)
		       : 0;
}

/* ROCr maps host memory and buffers of the virtual memory API by their handles. It notes metadata
 * only at VRAM that KFD maps (IPCCreate() in runtime.cpp, ROCr 7.2.4). */
static int save_without_list(const struct saving *saving, struct gem_saved *saved)
{
	return saved->bo != IMAGE_NO_BO && saved->metadata
		       ? 0
		       : refuse_handle(saving, saved->handle,
				       " which the program may have mapped,");
}

static int save_handle(const struct saving *saving, const struct gem_named *named,
		       struct gem_saved *saved)
{
	const struct dumped_process *process = saving->process;
	const struct gem_file *file = saving->file;
	const struct bo_index_entry *bo = find_bo(process, file, named);
	int ret;

	saved->handle = named->handle;
	saved->is_import = named->is_import;
	saved->key = named->key;
	saved->bo = bo ? bo->index : IMAGE_NO_BO;
	if (!named->key || named->handle > IMAGE_HANDLE_MAX(named - file->handles))
		return refuse_handle(saving, named->handle, "");
	ret = read_metadata(saving, saved);
	if (ret < 0)
		return ret;
	ret = render_node_gem_offset(file->fd, named->handle, &saved->mmap_offset);
	if (!ret)
		ret = render_node_gem_mappings(file->fd, named->handle, &saved->mappings,
					       &saved->num_mappings);
	if (ret == -EINVAL)
		return save_without_list(saving, saved);
	if (ret < 0)
		return log_error(ret, "%s: renderD%u: cannot list the mappings of GEM handle %u",
				 process->name, file->gpu->drm_render_minor, named->handle);
	return keep_mappings(saving, saved);
}

static int save_file(const struct saving *saving, struct gem_saved_list *list)
{
	const struct gem_file *file = saving->file;
	int ret = array_grow(&list->list, list->count + file->num_handles + 1, sizeof(*list->list));

	if (ret < 0)
		return log_error(ret, "%s: cannot list its GEM handles", saving->process->name);
	for (size_t i = 0; !ret && i < file->num_handles; i++) {
		struct gem_saved *saved = &list->list[list->count++];

		*saved = (struct gem_saved){ .gpu_id = saving->gpu_id };
		ret = save_handle(saving, &file->handles[i], saved);
	}
	return ret;
}

static const struct gem_file *find_compute_file(const struct gem_files *files,
						const struct dumped_gpu *gpu)
{
	for (size_t i = 0; i < files->count; i++) {
		if (files->list[i].gpu->drm_render_minor == gpu->render_minor &&
		    is_compute_file(files, &files->list[i], gpu))
			return &files->list[i];
	}
	return NULL;
}

static int save_files(struct dumped_process *process)
{
	struct saving saving = { .process = process };
	int ret = 0;

	for (size_t i = 0; !ret && i < process->num_gpus; i++) {
		struct dumped_gpu *gpu = &process->gpus[i];
		const struct gem_file *file = find_compute_file(&process->gem_files, gpu);

		gpu->compute_file = file ? file->number : DUMP_NO_FILE;
		gpu->num_handles = file ? file->num_handles : 0;
		saving.file = file;
		saving.gpu_id = gpu->user_gpu_id;
		ret = file ? save_file(&saving, &process->gem) : 0;
	}
	return ret;
}

static int compare_saved(const void *a, const void *b)
{
	const struct gem_saved *one = a, *other = b;

	return ORDER(one->gpu_id, other->gpu_id) ?: ORDER(one->handle, other->handle);
}

static int compare_places(const void *a, const void *b)
{
	const struct gem_saved *one = *(const struct gem_saved *const *)a;
	const struct gem_saved *other = *(const struct gem_saved *const *)b;

	return ORDER(one->gpu_id, other->gpu_id) ?: ORDER(one->mmap_offset, other->mmap_offset);
}

static int list_foreign(struct gem_saved_list *saved)
{
	saved->foreign = calloc(saved->count + 1, sizeof(*saved->foreign));
	if (!saved->foreign)
		return -ENOMEM;
	for (size_t i = 0; i < saved->count; i++) {
		if (saved->list[i].bo == IMAGE_NO_BO && !saved->list[i].is_import)
			saved->foreign[saved->num_foreign++] = &saved->list[i];
	}
	qsort(saved->foreign, saved->num_foreign, sizeof(*saved->foreign), compare_places);
	return 0;
}

bool gem_list_has_foreign(const struct gem_saved_list *saved, uint32_t gpu_id, uint64_t mmap_offset)
{
	const struct gem_saved wanted = { .gpu_id = gpu_id, .mmap_offset = mmap_offset };
	const struct gem_saved *key = &wanted;

	return saved->num_foreign && bsearch(&key, saved->foreign, saved->num_foreign,
					     sizeof(*saved->foreign), compare_places);
}

int gem_list_save(struct dumped_process *process)
{
	struct gem_saved_list *saved = &process->gem;
	int ret;

	gem_list_saved_done(saved);
	ret = save_files(process);
	if (ret < 0)
		return ret;
	if (saved->count)
		qsort(saved->list, saved->count, sizeof(*saved->list), compare_saved);
	ret = list_foreign(saved);
	return ret < 0 ? log_error(ret, "%s: cannot list its GEM handles", process->name) : 0;
}
