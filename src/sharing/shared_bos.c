// SPDX-License-Identifier: GPL-2.0-only
/* Lists the BOs of all processes of a dump, and refuses what cannot be shared again. object_rules.c
 * finds out which of them are one object. */
#include "sharing/shared_bos.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/render_node.h"
#include "preflight/bo_index.h"
#include "preflight/gem_list.h"
#include "preflight/preflight.h"
#include "preflight/preflight_process.h"
#include "sharing/dmabufs.h"
#include "sharing/object_rules.h"

/* Its index in the session. */
static size_t number_of(const struct dumped_process *process)
{
	return (size_t)(process - process->session->processes);
}

static int add_bo(struct shared_bos *shared, const struct dumped_process *process, int fdinfo,
		  const struct bo_index_entry *entry)
{
	const struct kfd_bo_bucket *bo = &process->state.bos[entry->index];
	uint64_t references = 0;
	size_t first;
	struct stat file;
	int ret;

	if (fstat((int)bo->dmabuf_fd, &file) < 0)
		return -errno;
	ret = dmabufs_count_references(fdinfo, (int)bo->dmabuf_fd, &references);
	if (ret < 0)
		return ret;
	shared->list[shared->count++] = (struct shared_bo){
		.process = number_of(process),
		.first_open = process->first_open,
		.index = entry->index,
		.device = entry->device,
		.gpu_id = bo_index_gpu_of(process, bo->gpu_id)->actual_gpu_id,
		.alloc_flags = bo->alloc_flags,
		.offset = entry->offset,
		.size = entry->size,
		.inode = entry->inode,
		.file_system = file.st_dev,
		.descriptors = dmabufs_count(&shared->files, file.st_dev, file.st_ino, &first) +
			       dmabufs_count(&shared->own_files, file.st_dev, file.st_ino, &first),
		.references = references,
	};
	return 0;
}

/* The number of references shows processes outside the dump, so each BO is asked for, also one that
 * nothing in the dump shares. The queues stand still meanwhile, so the kernel walks the path of the
 * fdinfo once. */
static int add_bos(struct shared_bos *shared, const struct dumped_process *process)
{
	const struct bo_index *bos = &process->bo_index;
	_cleanup_close_ int fdinfo = fd_open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY);
	int ret = array_grow(&shared->list, shared->count + bos->count + 1, sizeof(*shared->list));

	if (fdinfo < 0)
		return fdinfo;
	for (size_t i = 0; !ret && i < bos->count; i++)
		ret = add_bo(shared, process, fdinfo, &bos->entries[i]);
	return ret;
}

/* In a hive of XGMI, and on other partitions of the device, GPUs map VRAM without an attachment. */
static bool may_be_attached(const struct topology_node *gpu, const struct topology_node *mapper,
			    uint32_t alloc_flags)
{
	if (!mapper || topology_pci_device(gpu) == topology_pci_device(mapper))
		return !mapper;
	return !(alloc_flags & KFD_BO_VRAM) || !gpu->hive_id || gpu->hive_id != mapper->hive_id;
}

/* Notes for each BO from @first on what its record says. */
static void read_records(struct shared_bos *shared, size_t first,
			 const struct dumped_process *process)
{
	const struct kfd_state *state = &process->state;
	struct kfd_priv_bo_record record;

	for (size_t i = first; i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		const struct topology_node *gpu =
			bo_index_gpu_of(process, state->bos[bo->index].gpu_id);

		bo->attachments = state->num_devices - 1;
		if (kfd_priv_read_bo(&process->priv, bo->index, &record) < 0)
			continue;
		bo->ipc = record.ipc;
		bo->attachments = 0;
		for (uint32_t at = 0; at < record.num_gpus; at++)
			bo->attachments += may_be_attached(
				gpu, bo_index_gpu_of(process, record.gpu_ids[at]), bo->alloc_flags);
	}
}

static int add_handle(struct shared_bos *shared, size_t process, const struct gem_file *file,
		      const struct gem_named *named)
{
	const struct shared_handle handle = {
		.name = { .is_inode = named->is_import,
			  .device = named->is_import ? 0 : topology_pci_device(file->gpu),
			  .number = named->key },
		.process = process,
	};

	return array_append(&shared->handles, &shared->num_handles, sizeof(handle), &handle);
}

/* Those of the process's render files. */
static int add_handles(struct shared_bos *shared, const struct dumped_process *process)
{
	const struct gem_files *files = &process->gem_files;
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++) {
		for (size_t j = 0; !ret && j < files->list[i].num_handles; j++)
			ret = add_handle(shared, number_of(process), &files->list[i],
					 &files->list[i].handles[j]);
	}
	return ret;
}

int shared_bos_add(const struct dumped_process *process)
{
	struct shared_bos *shared = process->session->shared;
	const size_t first = shared->count;
	int ret = add_bos(shared, process);

	if (!ret) {
		read_records(shared, first, process);
		ret = add_handles(shared, process);
	}
	return ret < 0 ? log_error(ret, "%s: cannot list the BOs that it shares", process->name)
		       : 0;
}

/* A restore keeps imports from RESTORE, and some kernels refuse a RESTORE without BOs. */
static int check_own_bos(const struct dumped_process *process)
{
	const struct shared_bos *shared = process->session->shared;
	size_t imports = 0;

	for (size_t i = 0; i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];

		imports +=
			bo->process == number_of(process) && bo->imported && !bo->by_share_handle;
	}
	return imports && imports == process->state.num_bos
		       ? preflight_process_refuse_without_bos(process->session, process->pid)
		       : 0;
}

int shared_bos_begin(struct dump_session *session)
{
	int ret;

	if (session->shared)
		return 0;
	session->shared = calloc(1, sizeof(*session->shared));
	if (!session->shared)
		return log_error(-ENOMEM, "processes: cannot list their BOs");
	ret = dmabufs_list(&session->tasks, &session->shared->files);
	if (!ret)
		ret = dmabufs_list_own(&session->shared->own_files);
	return ret < 0 ? log_error(ret, "processes: cannot list their open files") : 0;
}

struct shared_bo *shared_bos_get(const struct dumped_process *process, uint32_t index)
{
	const struct shared_bos *shared = process->session->shared;
	const struct shared_bo wanted = { .process = number_of(process), .index = index };

	return shared->count ? bsearch(&wanted, shared->list, shared->count, sizeof(wanted),
				       object_rules_compare)
			     : NULL;
}

/* KFD makes an object for the import on another PCI device, and no call returns its offset. The CPU
 * cannot access its memory anyway (ttm_bo_vm_fault_reserved() in Linux 6.12). */
int shared_bos_check_mapping(const struct dumped_process *process,
			     const struct proc_mapping *mapping)
{
	const struct bo_index_entry *entry = NULL;
	const struct topology_node *gpu =
		render_node_find_gpu(&process->session->topology, mapping->device);
	const struct shared_bo *bo;

	if (gpu)
		entry = bo_index_find_offset(&process->bo_index, topology_pci_device(gpu),
					     mapping->offset);
	bo = entry ? shared_bos_get(process, entry->index) : NULL;
	if (!bo || !bo->on_other_device || bo->problem)
		return 0;
	return preflight_refuse(process->session, DUMP_MAPPING_OF_IMPORT,
				"%s: mapping 0x%" PRIx64 "-0x%" PRIx64
				" of renderD%u, BO 0x%" PRIx64 ",",
				process->name, mapping->start, mapping->end, gpu->drm_render_minor,
				process->state.bos[entry->index].addr);
}

int shared_bos_find_named(const struct dumped_process *process, struct gem_saved *saved)
{
	const struct shared_bos *shared = process->session->shared;
	const struct topology_node *gpu = bo_index_gpu_of(process, saved->gpu_id);
	const struct bo_name name = {
		.is_inode = saved->is_import,
		.device = saved->is_import || !gpu ? 0 : topology_pci_device(gpu),
		.number = saved->key,
	};
	const struct shared_bo *bo = object_rules_find(shared, &name);

	if (!bo)
		return -ENOENT;
	saved->object = bo->object;
	saved->owner = process->session->processes[bo->owner].vpid;
	saved->size = bo->size;
	return 0;
}

/* The CPU cannot access an object of another PCI device. */
bool shared_bos_maps_other(const struct dumped_process *process, const struct proc_mapping *mapping)
{
	const struct topology_node *gpu =
		render_node_find_gpu(&process->session->topology, mapping->device);
	const struct dumped_gpu *seen = gpu ? dump_find_gpu(process, gpu) : NULL;

	return seen && gem_list_has_foreign(&process->gem, seen->user_gpu_id, mapping->offset);
}

bool shared_bos_is_private(const struct dumped_process *process, uint32_t index)
{
	const struct shared_bo *bo = shared_bos_get(process, index);

	return bo && !bo->object && !bo->problem;
}

/* A restore needs the record of an import. */
static void check_record(const struct dumped_process *process, struct shared_bo *bo)
{
	struct kfd_priv_bo_record record;

	if (bo->problem || !bo->imported || bo->by_share_handle)
		return;
	if (kfd_priv_read_bo(&process->priv, bo->index, &record) < 0)
		bo->problem = "the driver's record of it has an unknown layout";
	else if (record.handle > IMAGE_HANDLE_MAX(process->state.num_bos))
		bo->problem = "its handle is too high";
}

/* The flags of an import do not say how the object was made, so the plugin asks the render node. If
 * the memory is that of another PCI device, a restore would make it elsewhere, and the plugin
 * cannot tell that the dma-buf is the right one. */
static int read_orphan(const struct dumped_process *process, struct shared_bo *orphan)
{
	const struct kfd_bo_bucket *bo = &process->state.bos[orphan->index];
	const struct topology_node *gpu = bo_index_gpu_of(process, bo->gpu_id);
	_cleanup_close_ int fd = -1;
	struct render_bo made = { 0 };
	int ret = render_node_open(gpu->drm_render_minor, HOST_LOWEST_FD, &fd);

	if (!ret)
		ret = render_node_gem_read(fd, (int)bo->dmabuf_fd, &made);
	if (ret < 0)
		return log_error(ret,
				 "%s: BO at 0x%" PRIx64
				 ": cannot import the dma-buf to see how it was made",
				 process->name, bo->addr);
	orphan->made_flags = kfd_bo_flags_of_gem(bo->alloc_flags, made.flags);
	if (made.mmap_offset && made.mmap_offset != bo->offset)
		orphan->lost =
			"it is of another PCI device, and the process that made it has freed it";
	return 0;
}

static int read_orphans(struct dump_session *session)
{
	struct shared_bos *shared = session->shared;
	int ret = 0;

	for (size_t i = 0; !ret && i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		const struct dumped_process *process = &session->processes[bo->process];

		check_record(process, bo);
		if (!bo->problem && bo->recreated)
			ret = read_orphan(process, bo);
	}
	return ret;
}

int shared_bos_find_objects(struct dump_session *session)
{
	struct shared_bos *shared = session->shared;
	int ret = dmabufs_find_bos(shared, &session->topology);

	if (ret < 0)
		return log_error(ret, "processes: cannot list the BOs that they share");
	object_rules_apply(shared);
	ret = read_orphans(session);
	if (ret < 0)
		return ret;
	ret = object_rules_name_objects(shared);
	return ret < 0 ? log_error(ret, "processes: cannot list the BOs that they share") : 0;
}

static const struct shared_bo *find_problem(const struct dumped_process *process)
{
	const struct shared_bo *bo = NULL;

	for (uint32_t i = 0; (!bo || !bo->problem) && i < process->state.num_bos; i++)
		bo = shared_bos_get(process, i);
	return bo && bo->problem ? bo : NULL;
}

static int refuse_shared_bo(const struct dumped_process *process, const struct shared_bo *bo,
			    enum dump_rule rule, const char *problem)
{
	return preflight_refuse(process->session, rule,
				"%s: BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", flags 0x%x, (%s)",
				process->name, bo->index, bo->size,
				process->state.bos[bo->index].addr, bo->alloc_flags, problem);
}

static int check_orphans(const struct dumped_process *process)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < process->state.num_bos; i++) {
		const struct shared_bo *bo = shared_bos_get(process, i);

		if (bo && !bo->problem && bo->lost)
			ret = refuse_shared_bo(process, bo, DUMP_BO_SHARED, bo->lost);
	}
	return ret;
}

/* RESTORE would join the BO to that of the process outside, so no restore runs beside that process.
 * A holder may also be something else than an importer, so this can be forced. */
static bool needs_end_of_holder(const struct shared_bo *bo)
{
	return bo->has_external_holder && kfd_priv_has_share_handle(&bo->ipc) && host_ends_tasks();
}

static int check_holders(const struct dumped_process *process)
{
	const struct shared_bo *first = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < process->state.num_bos; i++) {
		const struct shared_bo *bo = shared_bos_get(process, i);

		if (!bo || !bo->has_external_holder || bo->problem)
			continue;
		if (needs_end_of_holder(bo))
			return refuse_shared_bo(process, bo, DUMP_BO_HELD,
						"its dma-buf has more holders than the dump knows");
		first = first ? first : bo;
		count++;
	}
	if (first)
		log_warn(
			"%s: BO %u of %" PRIu64 " bytes at 0x%" PRIx64
			", and %u more: the kernel counts more holders than the dump knows; a process outside the dump that shares the BO will not see the restored one, and as long as it has a share handle of the BO, a restore fails; dump all processes that share it together",
			process->name, first->index, first->size,
			process->state.bos[first->index].addr, count - 1);
	return 0;
}

int shared_bos_check(const struct dumped_process *process)
{
	const struct shared_bo *problem = find_problem(process);
	int ret = check_own_bos(process);

	if (!ret && problem)
		ret = refuse_shared_bo(process, problem,
				       problem->outside ? DUMP_BO_OUTSIDE : DUMP_BO_SHARED,
				       problem->problem);
	if (!ret)
		ret = check_holders(process);
	return ret < 0 ? ret : check_orphans(process);
}

/* Otherwise RESTORE would join the BO to others with its share handle. */
static void separate(struct dumped_process *process, struct shared_bo *bo)
{
	static const uint32_t none[KFD_SHARE_WORDS];

	bo->object = 0;
	bo->imported = false;
	bo->on_other_device = false;
	bo->by_share_handle = false;
	if (kfd_priv_has_share_handle(&bo->ipc))
		kfd_priv_write_share_handle(&process->priv, bo->index, none,
					    process->state.priv_data);
}

/* Without the flag PUBLIC, which no kernel tells, the CPU can map the BO all the same
 * (amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu() in 6.12). */
static void recreate(struct dumped_process *process, const struct shared_bo *bo)
{
	struct kfd_bo_bucket *saved = &process->state.bos[bo->index];
	const uint32_t flags = saved->alloc_flags | bo->made_flags;

	if (bo->object || flags != saved->alloc_flags)
		log_info(
			"%s: BO at 0x%" PRIx64
			": its creator has freed it, so this process recreates it, with flags 0x%x",
			process->name, saved->addr, flags);
	saved->alloc_flags = flags;
}

void shared_bos_change_saved_state(struct dumped_process *process)
{
	for (uint32_t i = 0; i < process->state.num_bos; i++) {
		struct shared_bo *bo = shared_bos_get(process, i);

		if (bo && bo->problem)
			separate(process, bo);
		else if (bo && bo->recreated)
			recreate(process, bo);
	}
}

int shared_bos_find_file(const struct dump_session *session, const struct stat *stat,
			 uint32_t *ret_object, const struct dumped_process **ret_owner)
{
	const struct shared_bos *shared = session->shared;
	const struct shared_bo *bo;
	struct bo_name name;

	if (!shared)
		return -ENOENT;
	name = dmabufs_name(&shared->files, stat);
	bo = object_rules_find(shared, &name);
	if (!bo || (name.is_inode && bo->file_system != stat->st_dev))
		return -ENOENT;
	*ret_object = bo->object;
	*ret_owner = &session->processes[bo->owner];
	return 0;
}

int shared_bos_check_seen(const struct dump_session *session)
{
	const struct shared_bos *shared = session->shared;

	for (size_t i = 0; shared && i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];
		const struct dumped_process *process = &session->processes[bo->process];

		if (bo->object && process->id == DUMP_NO_ID)
			return log_error(
				-EOPNOTSUPP,
				"process %d: shares memory of GPU 0x%04x with a process of the dump, but is not dumped; dump both together",
				process->pid, bo->gpu_id);
	}
	return 0;
}

void shared_bos_done(struct dump_session *session)
{
	if (session->shared) {
		dmabufs_done(&session->shared->files);
		dmabufs_done(&session->shared->own_files);
		free(session->shared->list);
		free(session->shared->handles);
		free(session->shared->objects);
	}
	free(session->shared);
	session->shared = NULL;
}
