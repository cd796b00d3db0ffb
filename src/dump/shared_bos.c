// SPDX-License-Identifier: GPL-2.0-only
/* Lists the BOs of all processes of a dump, and refuses what cannot be shared again. object_rules.c
 * finds out which of them are one object. */
#include "dump/shared_bos.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/dmabuf_bos.h"
#include "dump/dmabuf_holders.h"
#include "dump/dump_image.h"
#include "dump/object_rules.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "pause/pause.h"
#include "preflight/bo_index.h"
#include "preflight/gem_list.h"
#include "preflight/preflight.h"

static int add_bo(struct shared_bos *shared, const struct kfd_state *state, uint32_t index,
		  const struct topology_node *gpu)
{
	const struct kfd_bo_bucket *bo = &state->bos[index];
	uint64_t references = 0;
	struct stat file;
	int ret;

	if (fstat((int)bo->dmabuf_fd, &file) < 0)
		return -errno;
	ret = dmabuf_holders_count((int)bo->dmabuf_fd, &references);
	if (ret < 0)
		return ret;
	shared->list[shared->count++] = (struct shared_bo){
		.process = shared->num_processes - 1,
		.index = index,
		.device = topology_pci_device(gpu),
		.gpu_id = gpu->actual_gpu_id,
		.alloc_flags = bo->alloc_flags,
		.offset = bo->offset,
		.size = bo->size,
		.inode = file.st_ino,
		.file_system = file.st_dev,
		.descriptors = dmabuf_holders_find(&shared->files, &file),
		.references = references,
	};
	return 0;
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
static void read_records(struct shared_bos *shared, size_t first, const struct kfd_state *state,
			 const struct topology *topology)
{
	const struct kfd_priv priv = kfd_priv_of_state(state);
	struct kfd_priv_bo_record record;
	uint64_t bo_size = 0;

	(void)kfd_priv_find_bo_size(&priv, &bo_size);
	for (size_t i = first; i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		const struct topology_node *gpu =
			bo_index_find_gpu(state, topology, state->bos[bo->index].gpu_id);

		bo->attachments = state->num_devices - 1;
		bo->has_record = kfd_priv_read_bo(&priv, bo_size, bo->index, &record) == 0;
		if (!bo->has_record)
			continue;
		bo->handle = record.handle;
		bo->ipc = record.ipc;
		bo->attachments = 0;
		for (uint32_t at = 0; at < record.num_gpus; at++)
			bo->attachments += may_be_attached(
				gpu, bo_index_find_gpu(state, topology, record.gpu_ids[at]),
				bo->alloc_flags);
	}
}

static int add_handle(struct shared_bos *shared, size_t process, const struct gem_file *file,
		      const struct gem_named *named)
{
	const struct shared_handle handle = {
		.process = process,
		.is_import = named->is_import,
		.device = named->is_import ? 0 : topology_pci_device(file->gpu),
		.key = named->key,
	};

	return array_append(&shared->handles, &shared->num_handles, sizeof(handle), &handle);
}

/* Those of the process's render files. */
static int add_handles(struct shared_bos *shared, size_t process,
		       const struct dump_session *session)
{
	_cleanup_(gem_list_files_done) struct gem_files files = { 0 };
	pid_t pid;
	int ret = proc_find_tracee(session->processes[process].vpid, &pid);

	if (!ret)
		ret = gem_list_read(pid, &session->topology, &files);
	for (size_t i = 0; !ret && i < files.count; i++) {
		for (size_t j = 0; !ret && j < files.list[i].num_handles; j++)
			ret = add_handle(shared, process, &files.list[i],
					 &files.list[i].handles[j]);
	}
	return ret;
}

static int add_process(struct shared_bos *shared, size_t process, const struct kfd_state *state,
		       const struct dump_session *session)
{
	const struct topology *topology = &session->topology;
	const size_t first = shared->count;
	int ret = array_grow(&shared->list, shared->count + state->num_bos + 1,
			     sizeof(*shared->list));

	shared->num_processes = process + 1;
	for (uint32_t i = 0; !ret && i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];
		const struct topology_node *gpu = bo_index_find_gpu(state, topology, bo->gpu_id);

		if (gpu && bo->alloc_flags & KFD_BO_WITH_CONTENTS)
			ret = add_bo(shared, state, i, gpu);
	}
	if (ret < 0)
		return ret;
	read_records(shared, first, state, topology);
	return add_handles(shared, process, session);
}

/* Its index in the session. */
static size_t number_of(const struct process_dump *dump)
{
	return (size_t)(dump->process - dump->session->processes);
}

/* A restore keeps imports from RESTORE, and some kernels refuse a RESTORE without BOs. */
static int check_own_bos(const struct dump_session *session, size_t number)
{
	const struct dumped_process *process = &session->processes[number];
	const struct shared_bos *shared = session->shared;
	size_t imports = 0;

	for (size_t i = 0; i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];

		imports += bo->process == number && bo->imported && !bo->by_share_handle;
	}
	return imports && imports == process->num_bos
		       ? preflight_process_refuse_without_bos(session, process->pid)
		       : 0;
}

/* Adds all processes that are known by now. */
static int scan_all(struct process_dump *dump)
{
	struct dump_session *session = dump->session;
	struct shared_bos *shared = session->shared;
	int ret = 0;

	shared->first_process = number_of(dump);
	shared->are_listed = true;
	for (size_t i = 0; !ret && i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];
		_cleanup_(kfd_state_done) struct kfd_state state = { 0 };

		if (process == dump->process) {
			ret = add_process(shared, i, &dump->state, session);
			continue;
		}
		/* It sees no GPU. */
		if (!process->paused)
			continue;
		ret = pause_checkpoint(session, process, &state);
		if (ret < 0)
			return ret;
		ret = add_process(shared, i, &state, session);
	}
	if (!ret)
		ret = dmabuf_bos_find(shared, &session->topology);
	if (ret < 0)
		return log_error(ret, "processes: cannot list the BOs that they share");
	object_rules_apply(shared);
	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = check_own_bos(session, i);
	return ret;
}

int shared_bos_begin(struct dump_session *session)
{
	int ret;

	if (session->shared)
		return 0;
	session->shared = calloc(1, sizeof(*session->shared));
	if (!session->shared)
		return log_error(-ENOMEM, "processes: cannot list their BOs");
	ret = dmabuf_holders_list(&session->tasks, &session->shared->files);
	return ret < 0 ? log_error(ret, "processes: cannot list their open files") : 0;
}

bool shared_bos_are_listed(const struct dump_session *session)
{
	return session->shared && session->shared->are_listed;
}

static struct shared_bo *find(const struct process_dump *dump, uint32_t index)
{
	const struct shared_bos *shared = dump->session->shared;
	const struct shared_bo wanted = { .process = number_of(dump), .index = index };

	return shared && shared->count ? bsearch(&wanted, shared->list, shared->count,
						 sizeof(wanted), object_rules_compare)
				       : NULL;
}

const struct shared_bo *shared_bos_get(const struct process_dump *dump, uint32_t index)
{
	return find(dump, index);
}

/* KFD makes an object for the import on another PCI device, and no call returns its offset. The CPU
 * cannot access its memory anyway (ttm_bo_vm_fault_reserved() in Linux 6.12). */
int shared_bos_check_mapping(const struct process_dump *dump, const struct proc_mapping *mapping)
{
	const struct bo_index_entry *entry = NULL;
	const struct topology_node *gpu = NULL;
	const struct shared_bo *bo;
	uint32_t minor;

	if (render_node_is_device(mapping->device, &minor))
		gpu = topology_find_minor(dump->topology, minor);
	if (gpu)
		entry = bo_index_find_offset(dump->process->bo_index, topology_pci_device(gpu),
					     mapping->offset);
	bo = entry ? find(dump, entry->index) : NULL;
	if (!bo || !bo->on_other_device)
		return 0;
	return preflight_refuse(dump->session, DUMP_MAPPING_OF_IMPORT,
				"kfd %d: mapping 0x%" PRIx64 "-0x%" PRIx64
				" of renderD%u, BO 0x%" PRIx64 ",",
				dump->process->id, mapping->start, mapping->end, minor,
				dump->state.bos[entry->index].addr);
}

int shared_bos_find_named(const struct process_dump *dump, struct gem_saved *saved)
{
	const struct shared_bos *shared = dump->session->shared;
	const struct topology_node *gpu =
		bo_index_find_gpu(&dump->state, dump->topology, saved->gpu_id);
	const struct shared_handle handle = {
		.is_import = saved->is_import,
		.device = saved->is_import || !gpu ? 0 : topology_pci_device(gpu),
		.key = saved->key,
	};

	for (size_t i = 0; i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];

		if (!bo->object || !object_rules_is_named(bo, &handle))
			continue;
		saved->object = bo->object;
		saved->owner = dump->session->processes[bo->owner].vpid;
		saved->size = bo->size;
		return 0;
	}
	return -ENOENT;
}

/* The CPU cannot access an object of another PCI device. */
bool shared_bos_maps_other(const struct process_dump *dump, const struct proc_mapping *mapping)
{
	const struct topology_node *gpu = NULL;
	uint32_t minor;

	if (render_node_is_device(mapping->device, &minor))
		gpu = topology_find_minor(dump->topology, minor);
	for (size_t i = 0; gpu && i < dump->gem.count; i++) {
		const struct gem_saved *saved = &dump->gem.list[i];

		if (saved->bo == IMAGE_NO_BO && !saved->is_import &&
		    saved->mmap_offset == mapping->offset &&
		    bo_index_find_gpu(&dump->state, dump->topology, saved->gpu_id) == gpu)
			return true;
	}
	return false;
}

bool shared_bos_is_private(const struct process_dump *dump, uint32_t index)
{
	const struct shared_bo *bo = find(dump, index);

	return bo && !bo->object && !bo->problem;
}

/* All tasks are stopped, so the BOs are those of the scan. */
static int check_unchanged(const struct process_dump *dump)
{
	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &dump->state.bos[i];
		const struct shared_bo *found = find(dump, i);

		if (!(bo->alloc_flags & KFD_BO_WITH_CONTENTS))
			continue;
		if (!found || found->offset != bo->offset || found->size != bo->size ||
		    found->alloc_flags != bo->alloc_flags)
			return log_error(-EAGAIN, "kfd %d: BO %u has changed during the dump",
					 dump->process->id, i);
	}
	return 0;
}

/* A restore needs the record of an import. */
static void check_records(const struct process_dump *dump)
{
	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		struct shared_bo *bo = find(dump, i);

		if (!bo || bo->problem || !bo->imported || bo->by_share_handle)
			continue;
		if (!bo->has_record)
			bo->problem = "the driver's record of it has an unknown layout";
		else if (bo->handle > IMAGE_HANDLE_MAX(dump->state.num_bos))
			bo->problem = "its handle is too high";
	}
}

/* Otherwise RESTORE would join the BO to others with its share handle. */
static void make_own(const struct process_dump *dump, struct shared_bo *bo)
{
	static const uint32_t none[KFD_SHARE_WORDS];
	const struct kfd_priv priv = kfd_priv_of_state(&dump->state);

	bo->object = 0;
	bo->imported = false;
	bo->on_other_device = false;
	bo->by_share_handle = false;
	bo->adopted = false;
	if (kfd_priv_has_share_handle(&bo->ipc))
		kfd_priv_write_share_handle(&priv, bo->index, none, dump->state.priv_data);
}

/* With AMDGPU_FORCE the dump goes on, and a BO with a problem becomes one of its own. */
static int refuse_problems(const struct process_dump *dump)
{
	const struct shared_bo *first = NULL;

	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		struct shared_bo *bo = find(dump, i);

		if (!bo || !bo->problem)
			continue;
		if (!first)
			first = bo;
		make_own(dump, bo);
	}
	if (!first)
		return 0;
	return preflight_refuse(
		dump->session, first->outside ? DUMP_BO_OUTSIDE : DUMP_BO_SHARED,
		"kfd %d: BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", flags 0x%x, (%s)",
		dump->process->id, first->index, first->size, dump->state.bos[first->index].addr,
		first->alloc_flags, first->problem);
}

static int read_bo(const struct process_dump *dump, const struct kfd_bo_bucket *bo,
		   struct render_bo *ret_bo)
{
	const struct topology_node *gpu =
		bo_index_find_gpu(&dump->state, dump->topology, bo->gpu_id);
	_cleanup_close_ int fd = -1;
	int ret = render_node_open(gpu->drm_render_minor, HOST_LOWEST_FD, &fd);

	return ret ? ret : render_node_gem_read(fd, (int)bo->dmabuf_fd, ret_bo);
}

/* The memory is that of another PCI device: a restore would make it elsewhere, and the plugin
 * cannot tell that the dma-buf is the right one. */
static int refuse_lost(const struct process_dump *dump, const struct shared_bo *adopted,
		       const struct kfd_bo_bucket *bo)
{
	return preflight_refuse(dump->session, DUMP_BO_SHARED,
				"kfd %d: BO %u of %" PRIu64 " bytes at 0x%" PRIx64
				", flags 0x%x, (it is of another PCI device, and the process that"
				" made it has freed it)",
				dump->process->id, adopted->index, bo->size, bo->addr,
				bo->alloc_flags);
}

/* The flags of an import do not say how the object was made. Without the flag PUBLIC, which no
 * kernel tells, the CPU can map it all the same (amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu()
 * in 6.12). */
static int adopt_bo(const struct process_dump *dump, const struct shared_bo *adopted,
		    struct kfd_bo_bucket *bo)
{
	struct render_bo made = { 0 };
	uint32_t flags;
	int ret = read_bo(dump, bo, &made);

	if (ret < 0)
		return log_error(ret,
				 "kfd %d: BO at 0x%" PRIx64
				 ": cannot import the dma-buf to see how it was made",
				 dump->process->id, bo->addr);
	if (made.mmap_offset && made.mmap_offset != bo->offset)
		ret = refuse_lost(dump, adopted, bo);
	if (ret < 0)
		return ret;
	flags = bo->alloc_flags | kfd_bo_flags_of_gem(bo->alloc_flags, made.flags);
	if (adopted->object || flags != bo->alloc_flags)
		log_info("kfd %d: BO at 0x%" PRIx64 ": no process has it but by import, so this one"
			 " will make it, with flags 0x%x",
			 dump->process->id, bo->addr, flags);
	bo->alloc_flags = flags;
	return 0;
}

static int adopt_bos(struct process_dump *dump)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < dump->state.num_bos; i++) {
		const struct shared_bo *bo = find(dump, i);

		if (bo && !bo->problem && bo->adopted)
			ret = adopt_bo(dump, bo, &dump->state.bos[i]);
	}
	return ret;
}

static void warn_of_holders(const struct process_dump *dump)
{
	const struct shared_bo *first = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		const struct shared_bo *bo = find(dump, i);

		if (!bo || !bo->held_elsewhere || bo->problem)
			continue;
		first = first ? first : bo;
		count++;
	}
	if (first)
		log_warn("kfd %d: BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", and %u more: the"
			 " kernel counts more holders than the dump knows; a process outside the"
			 " dump that shares the BO will not see the restored one, and as long as it"
			 " has a share handle of the BO, a restore fails; dump all processes that"
			 " share it together",
			 dump->process->id, first->index, first->size,
			 dump->state.bos[first->index].addr, count - 1);
}

int shared_bos_check(struct process_dump *dump)
{
	int ret = shared_bos_are_listed(dump->session) ? 0 : scan_all(dump);

	if (!ret)
		ret = check_unchanged(dump);
	if (ret < 0)
		return ret;
	check_records(dump);
	ret = refuse_problems(dump);
	if (!ret)
		warn_of_holders(dump);
	return ret ? ret : adopt_bos(dump);
}

int shared_bos_find_file(const struct dump_session *session, const struct stat *stat,
			 uint32_t *ret_object, const struct dumped_process **ret_owner)
{
	const struct shared_bos *shared = session->shared;

	for (size_t i = 0; shared && i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];

		if (!bo->object || !dmabuf_bos_is_of(shared, stat, bo))
			continue;
		*ret_object = bo->object;
		*ret_owner = &session->processes[bo->owner];
		return 0;
	}
	return -ENOENT;
}

int shared_bos_check_seen(const struct dump_session *session)
{
	const struct shared_bos *shared = session->shared;

	for (size_t i = 0; shared && i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];
		const struct dumped_process *process = &session->processes[bo->process];

		if (bo->object && process->id == DUMP_NO_ID)
			return log_error(-EOPNOTSUPP,
					 "process %d: shares memory of GPU 0x%04x with a process of"
					 " the dump, but is not dumped; dump both together",
					 process->pid, bo->gpu_id);
	}
	return 0;
}

void shared_bos_done(struct dump_session *session)
{
	if (session->shared) {
		dmabuf_holders_done(&session->shared->files);
		free(session->shared->list);
		free(session->shared->handles);
	}
	free(session->shared);
	session->shared = NULL;
}
