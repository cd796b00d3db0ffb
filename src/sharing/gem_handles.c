// SPDX-License-Identifier: GPL-2.0-only
/* Makes the GEM handles of a task again, each under its old number, with mappings and metadata.
 * imports.c has made the BOs of which this task has an import. */
#include "sharing/gem_handles.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/render_node.h"
#include "memory/gpu_files.h"
#include "memory/mappings.h"
#include "memory/restore_shared.h"
#include "sharing/fillers.h"
#include "sharing/imports.h"

/* The handles of one render file. */
struct gem_importer {
	struct restore_session *session;
	const struct kfd_state *state;
	uint32_t gpu_id;
	struct fillers fillers;
};

/* For each BO of the image, the number of those before it that RESTORE makes. The caller frees it.
 */
static uint32_t *count_made(const CriuKfd *kfd)
{
	uint32_t *made = calloc(kfd->n_bo_entries + 1, sizeof(*made));

	for (size_t i = 0; made && i < kfd->n_bo_entries; i++)
		made[i + 1] = made[i] + !imports_take_out(kfd->bo_entries[i]);
	return made;
}

/* The handle of an import gets the number of its object, as that of an object of which the task has
 * no BO. That of another BO gets its index in the list of RESTORE. */
static int resolve_bos(CriuKfd *kfd)
{
	_cleanup_free_ uint32_t *made = count_made(kfd);

	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < kfd->n_gem_handles; i++) {
		GemHandleEntry *handle = kfd->gem_handles[i];
		const KfdBoEntry *bo;

		if (handle->bo == IMAGE_NO_BO)
			continue;
		bo = kfd->bo_entries[handle->bo];
		handle->object = bo->has_owner_pid ? bo->object : 0;
		handle->bo = made[handle->bo];
	}
	return 0;
}

int gem_handles_take(struct restored_task *task)
{
	ProtobufCBinaryData *priv_data = &task->kfd->priv_data;
	int ret;

	if (!task->kfd->n_gem_handles)
		return 0;
	kfd_priv_unmark(priv_data->data, priv_data->len);
	ret = resolve_bos(task->kfd);
	return ret < 0 ? log_error(ret, "kfd %d: cannot list its GEM handles", task->kfd_id) : 0;
}

static int take_number(int fd, uint32_t gpu_id, uint64_t *ret_handle)
{
	uint32_t number = 0;
	int ret = render_node_gem_take(fd, &number);

	*ret_handle = KFD_HANDLE(gpu_id, number);
	return ret;
}

static int free_number(int fd, uint64_t handle)
{
	return render_node_gem_close(fd, (uint32_t)handle);
}

static int fail(const struct gem_importer *importer, const GemHandleEntry *handle, int ret,
		const char *action)
{
	return log_error(ret, "kfd %d: GEM handle %u of GPU 0x%04x: cannot %s",
			 importer->session->task.kfd_id, handle->handle, importer->gpu_id, action);
}

/* The task has imported the object as a BO. */
static int fetch_own(const struct gem_importer *importer, const GemHandleEntry *handle, int *ret_fd)
{
	struct object object;
	int ret = restore_shared_find(importer->session->shared, handle->object, &object);

	if (!ret)
		ret = host_fetch_fd(object.store_id);
	if (ret < 0)
		return fail(importer, handle, ret, "import its BO");
	*ret_fd = ret;
	return 0;
}

/* Only another task has a BO of the object. */
static int fetch_other(const struct gem_importer *importer, const GemHandleEntry *handle,
		       int *ret_fd)
{
	struct awaited_object awaited = {
		.number = handle->object,
		.size = handle->size,
		.gpu_id = importer->gpu_id,
		.owner = (pid_t)handle->owner_pid,
	};
	struct object object = { 0 };

	(void)snprintf(awaited.name, sizeof(awaited.name), "kfd %d: GEM handle %u of GPU 0x%04x",
		       importer->session->task.kfd_id, handle->handle, importer->gpu_id);
	return imports_fetch(importer->session, &awaited, &object, ret_fd);
}

/* *@ret_fetched: the descriptor, if the caller must close it. */
static int find_dmabuf(const struct gem_importer *importer, const GemHandleEntry *handle,
		       int *ret_fetched)
{
	int ret;

	if (!handle->object)
		return (int)importer->state->bos[handle->bo].dmabuf_fd;
	ret = handle->bo == IMAGE_NO_BO ? fetch_other(importer, handle, ret_fetched)
					: fetch_own(importer, handle, ret_fetched);
	return ret < 0 ? ret : *ret_fetched;
}

static int import(struct gem_importer *importer, const GemHandleEntry *handle)
{
	const uint64_t wanted = KFD_HANDLE(importer->gpu_id, handle->handle);
	_cleanup_close_ int fetched = -1;
	uint32_t number = 0;
	int ret = fillers_reach(&importer->fillers, wanted);

	if (!ret)
		ret = find_dmabuf(importer, handle, &fetched);
	if (ret < 0)
		return ret;
	ret = render_node_gem_import(importer->fillers.fd, ret, &number);
	if (ret < 0)
		return fail(importer, handle, ret, "import its BO");
	return fillers_check(&importer->fillers, KFD_HANDLE(importer->gpu_id, number), wanted);
}

/* The CPU may map the object of another task through the render file. */
static int note_mapping(const struct gem_importer *importer, const GemHandleEntry *handle)
{
	struct restored_task *task = &importer->session->task;
	struct mapped_bo mapped = {
		.saved_minor = topology_find_gpu(&task->saved, importer->gpu_id)->drm_render_minor,
		.size = handle->size,
		.old_offset = handle->offset,
	};
	int ret;

	if (handle->bo != IMAGE_NO_BO)
		return 0;
	ret = render_node_gem_offset(importer->fillers.fd, handle->handle, &mapped.new_offset);
	if (!ret)
		ret = mappings_add_bo(&task->mappings, &mapped);
	return ret < 0 ? fail(importer, handle, ret, "record where the CPU can map it") : 0;
}

static int map(const struct gem_importer *importer, const GemHandleEntry *handle)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < handle->n_mappings; i++) {
		const DrmVmEntry *entry = handle->mappings[i];
		const struct render_mapping mapping = {
			.addr = entry->addr,
			.size = entry->size,
			.offset = entry->offset,
			.flags = entry->flags,
		};

		ret = render_node_gem_map(importer->fillers.fd, handle->handle, &mapping);
		if (ret < 0)
			(void)log_error(ret,
					"kfd %d: GEM handle %u of GPU 0x%04x: cannot map %" PRIu64
					" bytes at 0x%" PRIx64,
					importer->session->task.kfd_id, handle->handle,
					importer->gpu_id, mapping.size, mapping.addr);
	}
	return ret;
}

/* Several tasks may have a handle of the object. They note the same. */
static int note_metadata(const struct gem_importer *importer, const GemHandleEntry *handle)
{
	struct render_metadata metadata = {
		.flags = handle->metadata_flags,
		.tiling = handle->tiling,
		.size = (uint32_t)handle->metadata.len,
	};
	int ret;

	if (!handle->has_metadata)
		return 0;
	memcpy(metadata.data, handle->metadata.data, metadata.size);
	ret = render_node_gem_set_metadata(importer->fillers.fd, handle->handle, &metadata);
	return ret < 0 ? fail(importer, handle, ret, "set its metadata") : 0;
}

static int make_of_gpu(struct gem_importer *importer, const CriuKfd *kfd)
{
	size_t count = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < kfd->n_gem_handles; i++) {
		const GemHandleEntry *handle = kfd->gem_handles[i];

		if (handle->gpu_id != importer->gpu_id)
			continue;
		count++;
		ret = import(importer, handle);
		if (!ret)
			ret = note_mapping(importer, handle);
		if (!ret)
			ret = map(importer, handle);
		if (!ret)
			ret = note_metadata(importer, handle);
	}
	ret = fillers_done(&importer->fillers, ret);
	if (!ret && count)
		log_info("kfd %d: made %zu GEM handles of GPU 0x%04x, with %zu fillers",
			 importer->session->task.kfd_id, count, importer->gpu_id,
			 importer->fillers.count);
	return ret;
}

int gem_handles_restore(struct restore_session *session, const struct kfd_state *state)
{
	struct restored_task *task = &session->task;
	int ret = 0;

	for (size_t i = 0; !ret && task->kfd->n_gem_handles && i < task->saved.num_nodes; i++) {
		const struct topology_node *gpu = &task->saved.nodes[i];
		struct gem_importer importer = {
			.session = session,
			.state = state,
			.gpu_id = gpu->gpu_id,
			/* The kernel gives out no number 0. */
			.fillers = { .kfd_id = task->kfd_id,
				     .kind = "GEM handle",
				     .take = take_number,
				     .free = free_number,
				     .next = KFD_HANDLE(gpu->gpu_id, 1) },
		};

		if (!gpu->gpu_id)
			continue;
		importer.fillers.fd = gpu_files_find(&task->files, gpu->drm_render_minor);
		ret = make_of_gpu(&importer, task->kfd);
	}
	return ret;
}
