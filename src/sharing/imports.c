// SPDX-License-Identifier: GPL-2.0-only
/* Imports the shared BOs of a task, each under its old handle. restore_shared.c has the table
 * through which tasks find each other's BOs. */
#include "sharing/imports.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "image/image_priv.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "memory/gpu_files.h"
#include "memory/mappings.h"
#include "memory/restore_shared.h"
#include "sharing/fillers.h"

struct import {
	/* Sorts the list, and is the first member for compare_u64(). */
	uint64_t handle;
	/* A copy, because the list of BOs loses the entry. */
	KfdBoEntry entry;
	/* If RESTORE imports the BO by its share handle: its index in the list of BOs without the
	 * other imports. */
	uint32_t bo;
	struct kfd_priv_bo_record record;
};

/* The import of all BOs of a task. */
struct importer {
	struct restore_session *session;
	struct fillers fillers;
};

void imports_done(struct restored_task *task)
{
	free(task->imports.list);
	free(task->imports.taken);
	task->imports = (struct imports){ 0 };
}

static bool has_objects(const CriuKfd *kfd)
{
	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (kfd->bo_entries[i]->has_object)
			return true;
	}
	return false;
}

static int add_import(struct imports *imports, const KfdBoEntry *bo,
		      const struct kfd_priv_bo_record *record)
{
	const struct import import = {
		.handle = KFD_HANDLE(bo->gpu_id, record->handle),
		.entry = *bo,
		.bo = (uint32_t)imports->num_taken,
		.record = *record,
	};

	return array_append(&imports->list, &imports->count, sizeof(import), &import);
}

bool imports_take_out(const KfdBoEntry *bo)
{
	return bo->has_owner_pid && !bo->by_share_handle;
}

static int list_bos(const struct restored_task *task, const struct kfd_priv *priv,
		    struct imports *imports, bool *cut)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < priv->num_bos; i++) {
		const KfdBoEntry *bo = task->kfd->bo_entries[i];
		struct kfd_priv_bo_record record;

		ret = kfd_priv_read_bo(priv, i, &record);
		if (ret < 0)
			break;
		cut[i] = imports_take_out(bo);
		ret = bo->has_owner_pid ? add_import(imports, bo, &record) : 0;
		if (!cut[i])
			imports->taken[imports->num_taken++] =
				KFD_HANDLE(bo->gpu_id, record.handle);
	}
	return ret;
}

static void cut_entries(CriuKfd *kfd, const bool *cut)
{
	size_t count = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (cut[i])
			kfd_bo_entry__free_unpacked(kfd->bo_entries[i], NULL);
		else
			kfd->bo_entries[count++] = kfd->bo_entries[i];
	}
	kfd->n_bo_entries = count;
	kfd->num_of_bos = count;
}

static int take_imports(struct restored_task *task, const struct kfd_priv *priv,
			struct imports *imports)
{
	_cleanup_free_ bool *cut = calloc((size_t)priv->num_bos + 1, sizeof(*cut));
	int ret;

	imports->taken = calloc((size_t)priv->num_bos + 1, sizeof(*imports->taken));
	if (!cut || !imports->taken)
		return -ENOMEM;
	ret = list_bos(task, priv, imports, cut);
	if (!ret)
		ret = kfd_priv_cut_bos(priv, cut, task->kfd->priv_data.data,
				       &task->kfd->priv_data.len);
	if (ret < 0)
		return ret;
	cut_entries(task->kfd, cut);
	qsort(imports->taken, imports->num_taken, sizeof(*imports->taken), compare_u64);
	if (imports->count)
		qsort(imports->list, imports->count, sizeof(*imports->list), compare_u64);
	return 0;
}

int imports_take(struct restored_task *task)
{
	const struct kfd_priv priv = image_priv_in(task->kfd, &task->layout);
	ProtobufCBinaryData *priv_data = &task->kfd->priv_data;
	int ret;

	if (!has_objects(task->kfd))
		return 0;
	kfd_priv_unmark(priv_data->data, priv_data->len);
	ret = take_imports(task, &priv, &task->imports);
	return ret < 0 ? log_error(ret, "kfd %d: cannot list its shared BOs", task->kfd_id) : 0;
}

static const struct topology_node *saved_gpu(const struct restored_task *task, uint32_t gpu_id)
{
	return topology_find_gpu(&task->saved, gpu_id);
}

static struct object_gpu name_gpu(const struct topology_node *gpu)
{
	return (struct object_gpu){ gpu->actual_gpu_id, topology_pci_device(gpu) };
}

static int publish(const struct restore_session *session, uint32_t number,
		   const struct kfd_bo_bucket *bo)
{
	const struct topology_node *gpu = saved_gpu(&session->task, bo->gpu_id);
	struct object object = {
		.store_id = host_store_fd((int)bo->dmabuf_fd),
		.gpu = name_gpu(gpu_files_local(&session->task, gpu)),
		.saved_gpu = name_gpu(gpu),
		.mmap_offset = bo->restored_offset,
	};

	return object.store_id < 0 ? object.store_id
				   : restore_shared_publish(session->shared, number, &object);
}

/* The image has the BOs of @state now, in their order. */
static int publish_all(struct restore_session *session, const struct kfd_state *state)
{
	struct restored_task *task = &session->task;

	for (uint32_t i = 0; i < state->num_bos; i++) {
		const KfdBoEntry *entry = task->kfd->bo_entries[i];
		int ret;

		if (!entry->has_object || entry->has_owner_pid)
			continue;
		ret = publish(session, entry->object, &state->bos[i]);
		if (ret < 0)
			return log_error(ret,
					 "kfd %d: BO at 0x%" PRIx64
					 ": cannot offer it to the processes that share it",
					 task->kfd_id, entry->addr);
		task->imports.num_made++;
	}
	return 0;
}

/* Whether the owner of an object that is long in coming exists, and has an image at all. CRIU has
 * forked all tasks before the first of them restores its files. A stream cannot be searched. */
static int check_owner(const struct restore_session *session, const struct awaited_object *awaited)
{
	int id;

	if (proc_is_missing(awaited->owner))
		return -ESRCH;
	return image_is_streamed() ? 0 : image_set_find_kfd(&session->images, awaited->owner, &id);
}

int imports_await(const struct restore_session *session, const struct awaited_object *awaited,
		  struct object *ret_object)
{
	pid_t failed = 0;
	int ret;

	ret = restore_shared_await(session->shared, awaited->number, awaited->owner, ret_object,
				   &failed);
	while (ret == -ETIME) {
		ret = check_owner(session, awaited);
		if (!ret)
			ret = restore_shared_await(session->shared, awaited->number, awaited->owner,
						   ret_object, &failed);
	}
	if (ret == -ECANCELED)
		return log_error(ret, "%s: process %d has failed, and others share its BOs",
				 awaited->name, failed);
	if (ret == -ENODATA)
		return log_error(
			ret,
			"%s: the image of process %d, which shares it, does not have it; the images are damaged, or from two dumps",
			awaited->name, awaited->owner);
	return ret < 0 ? log_error(ret, "%s: process %d, which shares it, was not restored",
				   awaited->name, awaited->owner)
		       : 0;
}

enum relation { ONE_GPU, ONE_DEVICE, TWO_DEVICES };

static enum relation relate(const struct object_gpu *one, const struct object_gpu *other)
{
	if (one->device != other->device)
		return TWO_DEVICES;
	return one->gpu_id == other->gpu_id ? ONE_GPU : ONE_DEVICE;
}

/* KFD makes another kind of BO for another PCI device. */
static int check_gpu(const struct restored_task *task, const struct awaited_object *awaited,
		     const struct object *object)
{
	static const char *const words[] = {
		[ONE_GPU] = "one GPU",
		[ONE_DEVICE] = "partitions of one PCI device",
		[TWO_DEVICES] = "on different PCI devices",
	};
	const struct topology_node *node = saved_gpu(task, awaited->gpu_id);
	const struct object_gpu saved = name_gpu(node);
	const struct object_gpu gpu = name_gpu(gpu_files_local(task, node));
	const enum relation relation = relate(&saved, &object->saved_gpu);

	if (relate(&gpu, &object->gpu) == relation)
		return 0;
	return log_error(
		-EXDEV,
		"%s: saved GPU 0x%04x of process %d, which makes it, is GPU 0x%04x now, and saved GPU 0x%04x of this process is GPU 0x%04x; choose GPUs with device-map that are %s, as at the dump",
		awaited->name, object->saved_gpu.gpu_id, awaited->owner, object->gpu.gpu_id,
		saved.gpu_id, gpu.gpu_id, words[relation]);
}

static int check_size(const struct awaited_object *awaited, int dmabuf_fd)
{
	off_t size = lseek(dmabuf_fd, 0, SEEK_END);

	if (size >= 0 && (uint64_t)size == awaited->size)
		return 0;
	return log_error(-EINVAL, "%s: has %" PRIu64 " bytes, but process %d has made it with %lld",
			 awaited->name, awaited->size, awaited->owner, (long long)size);
}

int imports_fetch(const struct restore_session *session, const struct awaited_object *awaited,
		  struct object *ret_object, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	int ret = imports_await(session, awaited, ret_object);

	if (!ret)
		ret = check_gpu(&session->task, awaited, ret_object);
	if (ret < 0)
		return ret;
	fd = host_fetch_fd(ret_object->store_id);
	if (fd < 0)
		return log_error(fd, "%s: cannot fetch its dma-buf", awaited->name);
	ret = check_size(awaited, fd);
	if (!ret)
		*ret_fd = take_fd(&fd);
	return ret;
}

static struct awaited_object object_of(const struct importer *importer, const struct import *import)
{
	struct awaited_object awaited = {
		.number = import->entry.object,
		.size = import->entry.size,
		.gpu_id = import->entry.gpu_id,
		.owner = (pid_t)import->entry.owner_pid,
	};

	(void)snprintf(awaited.name, sizeof(awaited.name), "kfd %d: BO at 0x%" PRIx64,
		       importer->session->task.kfd_id, import->entry.addr);
	return awaited;
}

static int import_and_map(struct importer *importer, const struct import *import,
			  const struct awaited_object *awaited, int dmabuf_fd)
{
	uint64_t handle;
	int ret = fillers_reach(&importer->fillers, import->handle);

	if (ret < 0)
		return ret;
	ret = kfd_memory_import(importer->fillers.fd, import->entry.gpu_id, import->entry.addr,
				dmabuf_fd, &handle);
	if (ret < 0)
		return log_error(ret, "%s: cannot import it from process %d", awaited->name,
				 awaited->owner);
	ret = fillers_check(&importer->fillers, handle, import->handle);
	if (ret < 0)
		return ret;
	ret = kfd_memory_map(importer->fillers.fd, handle, import->record.gpu_ids,
			     import->record.num_gpus);
	return ret < 0 ? log_error(ret, "%s: cannot map it to %u GPUs", awaited->name,
				   import->record.num_gpus)
		       : 0;
}

/* A dump refuses mappings of imports on another PCI device. */
static int note_mapping(struct restored_task *task, const struct import *import,
			const struct object *object)
{
	const struct topology_node *saved = saved_gpu(task, import->entry.gpu_id);
	const struct mapped_bo mapped = {
		.saved_minor = saved->drm_render_minor,
		.addr = import->entry.addr,
		.size = import->entry.size,
		.old_offset = import->entry.offset,
		.new_offset = object->mmap_offset,
	};
	int ret;

	if (topology_pci_device(saved) != object->saved_gpu.device)
		return 0;
	ret = mappings_add_bo(&task->mappings, &mapped);
	return ret < 0 ? log_error(ret, "kfd %d: cannot record its mappings", task->kfd_id) : 0;
}

static int import_bo(struct importer *importer, const struct import *import)
{
	const struct awaited_object awaited = object_of(importer, import);
	_cleanup_close_ int dmabuf_fd = -1;
	struct object object = { 0 };
	int ret = imports_fetch(importer->session, &awaited, &object, &dmabuf_fd);

	if (!ret)
		ret = import_and_map(importer, import, &awaited, dmabuf_fd);
	return ret < 0 ? ret : note_mapping(&importer->session->task, import, &object);
}

/* RESTORE does not say whether it has imported the object or made another one. Each object has one
 * dma-buf. */
static int check_joined(const struct importer *importer, const struct import *import,
			const struct kfd_bo_bucket *bo)
{
	const struct awaited_object awaited = object_of(importer, import);
	_cleanup_close_ int dmabuf_fd = -1;
	struct object object = { 0 };
	int ret = imports_fetch(importer->session, &awaited, &object, &dmabuf_fd);

	if (ret < 0)
		return ret;
	if (fd_is_same_inode((int)bo->dmabuf_fd, dmabuf_fd))
		return 0;
	return log_error(
		-EXDEV,
		"%s: the driver has not shared it with process %d by its share handle; restore where the job was dumped, with that driver",
		awaited.name, awaited.owner);
}

int imports_restore(struct restore_session *session, int fd, const struct kfd_state *state)
{
	const struct imports *imports = &session->task.imports;
	struct importer importer = {
		.session = session,
		.fillers = { .kfd_id = session->task.kfd_id,
			     .kind = "handle",
			     .fd = fd,
			     .take = kfd_memory_take_handle,
			     .free = kfd_memory_free,
			     .taken = imports->taken,
			     .num_taken = imports->num_taken },
	};
	size_t num_joined = 0;
	int ret = publish_all(session, state);

	if (!ret)
		restore_shared_announce(session->shared, session->task.vpid);
	for (size_t i = 0; !ret && i < imports->count; i++) {
		const struct import *import = &imports->list[i];

		num_joined += import->entry.by_share_handle;
		ret = import->entry.by_share_handle
			      ? check_joined(&importer, import, &state->bos[import->bo])
			      : import_bo(&importer, import);
	}
	ret = fillers_done(&importer.fillers, ret);
	if (!ret && (imports->num_made || imports->count))
		log_info(
			"kfd %d: shares %zu BOs, and imports %zu, with %zu fillers, and %zu by share handles",
			session->task.kfd_id, imports->num_made, imports->count - num_joined,
			importer.fillers.count, num_joined);
	return ret;
}
