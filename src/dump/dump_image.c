// SPDX-License-Identifier: GPL-2.0-only
/* Writes the images of a KFD process: the contents of its BOs, then its state. dump.c decides when.
 */
#include "dump/dump_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "content/checksum.h"
#include "content/kfd_jobs.h"
#include "criu/log.h"
#include "dump/base_dir.h"
#include "dump/gpu_watch.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "image/image_validate.h"
#include "kernel/amdgpu_module.h"
#include "kernel/hsakmt_shm.h"
#include "kernel/kfd_priv.h"
#include "kernel/kfd_queue.h"
#include "kernel/render_node.h"
#include "preflight/bo_index.h"
#include "preflight/preflight.h"
#include "sharing/shared_bos.h"

/* A message without contents, or NULL. ..__free_unpacked() frees it. */
static void *message_new(const ProtobufCMessageDescriptor *kind)
{
	void *message = malloc(kind->sizeof_message);

	if (message)
		protobuf_c_message_init(kind, message);
	return message;
}

/* Makes @count messages for the repeated field at @field (the address of a pointer), and counts
 * them in @ret_count. After an error the message with the field has those that were made. */
static int add_messages(const ProtobufCMessageDescriptor *kind, size_t count, void *field,
			size_t *ret_count)
{
	void **list = calloc(count + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	*(void **)field = list;
	for (size_t i = 0; i < count; i++) {
		list[i] = message_new(kind);
		if (!list[i])
			return -ENOMEM;
		++*ret_count;
	}
	return 0;
}

int dump_image_find_minor(const struct dumped_process *process, uint32_t user_gpu_id,
			  uint32_t *ret_minor)
{
	const struct topology_node *gpu = bo_index_gpu_of(process, user_gpu_id);

	if (!gpu)
		return log_error(-ENODEV, "%s: GPU 0x%04x has no render node here", process->name,
				 user_gpu_id);
	*ret_minor = gpu->drm_render_minor;
	return 0;
}

/* The number of mappings for which CRIU will call UPDATE_VMA_MAP: those of KFD and of AMD GPUs. */
static int count_mappings(struct dumped_process *process)
{
	const struct topology *topology = &process->session->topology;
	struct stat kfd_stat;

	if (fstat(process->fd, &kfd_stat) < 0)
		return -errno;
	process->num_updates = 0;
	for (size_t i = 0; i < process->num_mappings; i++) {
		const dev_t device = process->mappings[i].device;

		process->num_updates +=
			device == kfd_stat.st_rdev || render_node_find_gpu(topology, device);
	}
	return 0;
}

/* Asks for room last: creating the files has removed those of an older dump and freed their
 * blocks. */
static int create_pages(struct dumped_process *process, uint64_t missing_room)
{
	uint64_t total = missing_room, largest = 0, shared;
	int ret = base_dir_open(process->session);

	for (uint32_t i = 0; !ret && i < process->jobs.num_jobs; i++) {
		struct content_job *job = &process->jobs.jobs[i];
		uint64_t size = content_size(job->bos, job->num_bos);

		total += size;
		largest = size > largest ? size : largest;
		job->streamed = image_is_streamed();
		ret = dump_image_find_minor(process, job->gpu_id, &job->render_minor);
		if (!ret)
			ret = image_create_pages(process->id, job->gpu_id, size, &job->image_fd);
		if (!ret)
			ret = base_dir_add(process, job);
	}
	shared = base_dir_size(process->session);
	return ret < 0 ? ret : image_check_room(total > shared ? total - shared : 0, largest);
}

/* Some kernels may give the dma-buf of another BO: KFD's client of a GPU uses one GEM handle for
 * the exporter and the importers of a buffer, and does not count. With AMDGPU_FORCE a process may
 * have buffers of other GPUs, whose offset here differs. */
static void note_offsets(struct dumped_process *process)
{
	for (uint32_t i = 0; !process->session->options->force && i < process->state.num_bos; i++) {
		if (process->jobs.by_index[i])
			process->jobs.by_index[i]->mmap_offset = process->state.bos[i].offset;
	}
}

/* The contents of an import are in the image of its owner. */
static int list_contents(struct dumped_process *process)
{
	_cleanup_free_ bool *imported =
		calloc((size_t)process->state.num_bos + 1, sizeof(*imported));

	if (!imported)
		return -ENOMEM;
	for (uint32_t i = 0; i < process->state.num_bos; i++) {
		const struct shared_bo *bo = shared_bos_get(process, i);

		imported[i] = bo && bo->imported;
	}
	return kfd_jobs_init(&process->state, imported, &process->jobs);
}

int dump_image_begin_contents(struct dumped_process *process, uint64_t missing_room)
{
	int ret = count_mappings(process);

	if (!ret)
		ret = list_contents(process);
	if (ret < 0)
		return log_error(ret, "%s: cannot list its BOs", process->name);
	note_offsets(process);
	return create_pages(process, missing_room);
}

static int end_contents(struct dumped_process *process)
{
	struct kfd_jobs *jobs = &process->jobs;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < jobs->num_jobs; i++) {
		base_dir_finish(process, &jobs->jobs[i]);
		ret = image_close_pages(process->id, jobs->jobs[i].gpu_id, &jobs->jobs[i].image_fd);
	}
	if (!ret)
		content_totals_add(&process->session->totals, jobs->jobs, jobs->num_jobs);
	return ret;
}

/* The index of @gpu in KFD's list of devices, and of its job. The number of devices if the process
 * does not see the GPU. */
static uint32_t find_device(const struct dumped_process *process, const struct topology_node *gpu)
{
	uint32_t i = 0;

	while (i < process->state.num_devices &&
	       process->state.devices[i].actual_gpu_id != gpu->actual_gpu_id)
		i++;
	return i;
}

static int save_gpu(const struct dumped_process *process, uint32_t device, KfdDeviceEntry *entry)
{
	entry->gpu_id = process->state.devices[device].user_gpu_id;
	entry->has_contents_checksum = process->jobs.jobs[device].has_checksums;
	return checksum_of_job(&process->jobs.jobs[device], &entry->contents_checksum);
}

static int save_node(const struct dumped_process *process, const struct topology_node *node,
		     CriuKfd *kfd)
{
	uint32_t device = node->gpu_id ? find_device(process, node) : 0;
	KfdDeviceEntry *entry;

	if (node->gpu_id && device == process->state.num_devices)
		return 0;
	entry = topology_entry_new(&process->session->topology, node);
	if (!entry)
		return -ENOMEM;
	kfd->device_entries[kfd->n_device_entries++] = entry;
	if (node->gpu_id) {
		kfd->num_of_gpus++;
		return save_gpu(process, device, entry);
	}
	kfd->num_of_cpus++;
	return 0;
}

/* In the order in which sysfs lists the nodes, as CRIU's own plugin writes them. For each GPU of an
 * image in turn, that plugin takes the first GPU of sysfs that fits, and for each hive the first
 * hive that is large enough. In another order GPUs move that could stay, and a hive of three GPUs
 * takes the hive of four that the next hive of the image needs. */
static int save_devices(const struct dumped_process *process, CriuKfd *kfd)
{
	const struct topology *topology = &process->session->topology;
	int ret = 0;

	kfd->device_entries = calloc(topology->num_nodes + 1, sizeof(*kfd->device_entries));
	if (!kfd->device_entries)
		return -ENOMEM;
	for (uint32_t i = 0; !ret && i < TOPOLOGY_ENTRIES_MAX; i++) {
		const struct topology_node *node = topology_find_listed(topology, i);

		ret = node ? save_node(process, node, kfd) : 0;
	}
	return ret;
}

static bool has_checksum(const struct dumped_process *process, uint32_t bo)
{
	for (uint32_t i = 0; process->jobs.by_index[bo] && i < process->jobs.num_jobs; i++) {
		if (process->jobs.jobs[i].gpu_id == process->state.bos[bo].gpu_id)
			return process->jobs.jobs[i].has_checksums;
	}
	return false;
}

static void save_object(const struct dumped_process *process, uint32_t index, KfdBoEntry *entry)
{
	const struct shared_bo *bo = shared_bos_get(process, index);

	if (!bo || !bo->object)
		return;
	entry->has_object = true;
	entry->object = bo->object;
	entry->has_by_share_handle = entry->by_share_handle = bo->by_share_handle;
	entry->has_owner_pid = bo->imported;
	if (bo->imported)
		entry->owner_pid = (uint32_t)process->session->processes[bo->owner].vpid;
}

static int save_bos(const struct dumped_process *process, CriuKfd *kfd)
{
	int ret = add_messages(&kfd_bo_entry__descriptor, process->state.num_bos, &kfd->bo_entries,
			       &kfd->n_bo_entries);

	kfd->num_of_bos = process->state.num_bos;
	for (uint32_t i = 0; !ret && i < process->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &process->state.bos[i];
		KfdBoEntry *entry = kfd->bo_entries[i];

		entry->addr = bo->addr;
		entry->size = bo->size;
		entry->offset = bo->offset;
		entry->alloc_flags = bo->alloc_flags;
		entry->gpu_id = bo->gpu_id;
		/* CRIU's plugin requires the field. KFD's BOs have no handle in a render node. */
		entry->has_handle = true;
		entry->handle = 0xffffffff;
		entry->has_checksum = has_checksum(process, i);
		entry->checksum = entry->has_checksum ? process->jobs.by_index[i]->checksum : 0;
		save_object(process, i, entry);
	}
	return ret;
}

static int save_metadata(const struct render_metadata *metadata, GemHandleEntry *entry)
{
	if (!metadata)
		return 0;
	entry->has_metadata = entry->has_metadata_flags = entry->has_tiling = true;
	entry->metadata_flags = metadata->flags;
	entry->tiling = metadata->tiling;
	entry->metadata.data = malloc(metadata->size);
	if (!entry->metadata.data)
		return -ENOMEM;
	memcpy(entry->metadata.data, metadata->data, metadata->size);
	entry->metadata.len = metadata->size;
	return 0;
}

static int save_gem_handle(const struct gem_saved *saved, GemHandleEntry *entry)
{
	int ret;

	entry->gpu_id = saved->gpu_id;
	entry->handle = saved->handle;
	entry->bo = saved->bo;
	entry->has_object = entry->has_owner_pid = entry->has_size = entry->has_offset =
		saved->bo == IMAGE_NO_BO;
	entry->object = saved->object;
	entry->owner_pid = (uint32_t)saved->owner;
	entry->size = saved->size;
	entry->offset = saved->mmap_offset;
	ret = add_messages(&drm_vm_entry__descriptor, saved->num_mappings, &entry->mappings,
			   &entry->n_mappings);
	for (size_t i = 0; !ret && i < saved->num_mappings; i++) {
		const struct render_mapping *mapping = &saved->mappings[i];
		DrmVmEntry *made = entry->mappings[i];

		made->addr = mapping->addr;
		made->size = mapping->size;
		made->offset = mapping->offset;
		made->flags = mapping->flags;
	}
	return ret < 0 ? ret : save_metadata(saved->metadata, entry);
}

static int save_gem_handles(const struct dumped_process *process, CriuKfd *kfd)
{
	int ret = add_messages(&gem_handle_entry__descriptor, process->gem.count, &kfd->gem_handles,
			       &kfd->n_gem_handles);

	for (size_t i = 0; !ret && i < process->gem.count; i++)
		ret = save_gem_handle(&process->gem.list[i], kfd->gem_handles[i]);
	return ret;
}

/* A reader that does not know shared BOs or GEM handles must not restore the process. */
static bool needs_mark(const CriuKfd *kfd)
{
	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (kfd->bo_entries[i]->has_object)
			return true;
	}
	return kfd->n_gem_handles > 0;
}

static struct kfd_priv priv_of(const struct dumped_process *process, const CriuKfd *kfd)
{
	struct kfd_priv priv = process->priv;

	priv.bytes = kfd->priv_data.data;
	priv.size = kfd->priv_data.len;
	return priv;
}

/* This plugin repairs the state of queues at a restore, too. CRIU's own does not. */
static int repair_queue(const struct dumped_process *process, const struct kfd_priv_queue *saved,
			CriuKfd *kfd)
{
	const struct kfd_priv priv = priv_of(process, kfd);
	const struct kfd_queue queue = preflight_queue(process, &priv, saved);
	uint8_t *bytes = NULL;
	int ret;

	/* A restore refuses a queue whose waves are lost, and tells by the missing stack. */
	if (!queue.gpu || kfd_queue_loses_waves(&queue))
		return 0;
	ret = kfd_queue_repair(&queue, &bytes, &kfd->priv_data.len);
	if (ret <= 0)
		return ret;
	free(kfd->priv_data.data);
	kfd->priv_data.data = bytes;
	return 0;
}

static int repair_queues(const struct dumped_process *process, CriuKfd *kfd)
{
	const struct kfd_priv priv = priv_of(process, kfd);
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t count = 0;
	int ret = kfd_priv_list_queues(&priv, &queues, &count);

	/* DUMP_UNKNOWN_LAYOUT, by force. */
	if (ret == -EINVAL || ret == -ENOTUNIQ)
		return 0;
	/* From the last to the first: a repair moves what is behind the queue. */
	while (!ret && count-- > 0)
		ret = repair_queue(process, &queues[count], kfd);
	return ret;
}

static int save_priv_data(const struct dumped_process *process, CriuKfd *kfd)
{
	int ret;

	kfd->priv_data.data = malloc(process->state.priv_data_size + 1);
	if (!kfd->priv_data.data)
		return -ENOMEM;
	kfd->priv_data.len = process->state.priv_data_size;
	memcpy(kfd->priv_data.data, process->state.priv_data, kfd->priv_data.len);
	ret = repair_queues(process, kfd);
	if (!ret && needs_mark(kfd))
		kfd_priv_mark(kfd->priv_data.data, kfd->priv_data.len);
	return ret;
}

static int save_shared_mem(CriuKfd *kfd)
{
	struct hsakmt_shm shared;
	int ret = hsakmt_shm_read(&shared);

	if (ret < 0)
		return ret;
	kfd->shared_mem_size = shared.size;
	kfd->shared_mem_magic = shared.magic;
	kfd->has_shared_mem_mode = kfd->has_semaphore_mode = true;
	kfd->shared_mem_mode = shared.mode;
	kfd->semaphore_mode = shared.semaphore_mode;
	return 0;
}

static int save_kind_of_checksums(const struct dumped_process *process, CriuKfd *kfd)
{
	if (!process->session->options->content.checksum)
		return 0;
	kfd->checksums = strdup(CHECKSUM_NAME);
	return kfd->checksums ? 0 : -ENOMEM;
}

static int set_text(const char *text, char **field)
{
	/* A restore would refuse the image. */
	if (!image_validate_text(text))
		return 0;
	*field = strdup(text);
	return *field ? 0 : -ENOMEM;
}

static int set_module_text(const char *name, char **field)
{
	char text[SAVED_ON_TEXT];

	return amdgpu_module_text(name, text, sizeof(text)) ? set_text(text, field) : 0;
}

static int set_texts(SavedOn *saved)
{
	struct utsname system;
	int ret = set_text(PLUGIN_VERSION, &saved->plugin);

	if (!ret && !uname(&system))
		ret = set_text(system.release, &saved->kernel);
	if (!ret)
		ret = set_module_text("version", &saved->driver_version);
	return ret ? ret : set_module_text("srcversion", &saved->driver_source);
}

static void set_parameters(SavedOn *saved)
{
#define READ(name) saved->has_##name = amdgpu_module_parameter(#name, &saved->name);
	SAVED_ON_PARAMETERS(READ)
#undef READ
}

/* This machine and this moment. What cannot be read is missing in the message. */
static int describe_machine(const struct dump_session *session, SavedOn **ret_saved)
{
	SavedOn *saved = message_new(&saved_on__descriptor);

	if (!saved)
		return -ENOMEM;
	*ret_saved = saved;
	saved->has_time = true;
	saved->time = (uint64_t)time(NULL);
	saved->has_kfd_minor = true;
	saved->kfd_minor = session->kfd_minor;
	saved->has_drained_ms = session->totals.drained_s > 0;
	saved->drained_ms = (uint32_t)(session->totals.drained_s * 1000);
	set_parameters(saved);
	return set_texts(saved);
}

static int write_state(struct dumped_process *process)
{
	CriuKfd *kfd = message_new(&criu_kfd__descriptor);
	int ret;

	if (!kfd)
		return log_error(-ENOMEM, "%s: cannot write the image", process->name);
	kfd->pid = (uint32_t)process->vpid;
	kfd->num_of_objects = process->state.num_objects;
	kfd->has_num_of_mappings = true;
	kfd->num_of_mappings = process->num_updates;
	ret = save_shared_mem(kfd);
	if (!ret)
		ret = save_devices(process, kfd);
	if (!ret)
		ret = save_bos(process, kfd);
	if (!ret)
		ret = save_kind_of_checksums(process, kfd);
	if (!ret)
		ret = save_gem_handles(process, kfd);
	if (!ret)
		ret = describe_machine(process->session, &kfd->saved_on);
	if (!ret)
		ret = save_priv_data(process, kfd);
	if (ret < 0)
		(void)log_error(ret, "%s: cannot write the image", process->name);
	/* Otherwise the job ends, and a restore refuses its image. */
	if (!ret && kfd->num_of_gpus)
		ret = image_validate_kfd(process->id, kfd);
	if (!ret)
		ret = image_write_kfd(process->id, kfd);
	criu_kfd__free_unpacked(kfd, NULL);
	return ret;
}

int dump_image_finish(struct dumped_process *process)
{
	int ret = end_contents(process);

	if (!ret)
		ret = gpu_watch_check(process->session, process);
	/* Without a state image, a restore ignores the other images. */
	if (!ret)
		ret = write_state(process);
	if (ret < 0)
		return ret;
	process->session->totals.processes++;
	return 0;
}

CriuDmabufNode *dump_image_new_with_owners(const struct dump_session *session)
{
	CriuDmabufNode *image = message_new(&criu_dmabuf_node__descriptor);
	size_t count = 0;

	for (size_t i = 0; i < session->num_processes; i++)
		count += session->processes[i].id != DUMP_NO_ID;
	if (!image ||
	    add_messages(&kfd_owner__descriptor, count, &image->owners, &image->n_owners) < 0) {
		criu_dmabuf_node__free_unpacked(image, NULL);
		return NULL;
	}
	count = 0;
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id == DUMP_NO_ID)
			continue;
		image->owners[count]->pid = (uint32_t)session->processes[i].vpid;
		image->owners[count++]->kfd_id = (uint32_t)session->processes[i].id;
	}
	return image;
}

int dump_image_write_plain(int id, const char *reason)
{
	CriuKfd kfd = CRIU_KFD__INIT;

	log_info("kfd %d: %s", id, reason);
	return image_write_kfd(id, &kfd);
}

void dump_image_remove_all(const struct dump_session *session)
{
	/* By name first: the directory may fail to be listed. */
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id != DUMP_NO_ID)
			image_remove_kfd(session->processes[i].id);
	}
	/* Also the images of files without state, and of an older dump. */
	if (session->has_gpu_files)
		(void)image_dir_remove_state();
}
