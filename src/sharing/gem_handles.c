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

/* A handle of the image. Its mappings stay in the image. */
struct gem_handle {
	const GemHandleEntry *entry;
	/* Number of the object that the task imports from @owner, or 0 if it makes the BO itself.
	 */
	uint32_t object;
	pid_t owner;
	/* Index in the list of BOs that RESTORE makes. */
	uint32_t bo;
};

struct gem_handles {
	struct gem_handle *list;
	size_t count;
};

/* The handles of one render file. */
struct gem_importer {
	const struct restore_session *session;
	const struct kfd_state *state;
	uint32_t gpu_id;
	struct fillers fillers;
};

void gem_handles_done(struct restored_task *task)
{
	if (task->gem_handles)
		free(task->gem_handles->list);
	free(task->gem_handles);
	task->gem_handles = NULL;
}

/* For each BO of the image, the number of those before it that RESTORE makes. The caller frees it.
 */
static uint32_t *count_made(const CriuKfd *kfd)
{
	uint32_t *made = calloc(kfd->n_bo_entries + 1, sizeof(*made));

	for (size_t i = 0; made && i < kfd->n_bo_entries; i++)
		made[i + 1] = made[i] + !imports_take_out(kfd->bo_entries[i]);
	return made;
}

static struct gem_handle describe(const CriuKfd *kfd, const uint32_t *made,
				  const GemHandleEntry *entry)
{
	const KfdBoEntry *bo;

	if (entry->bo == IMAGE_NO_BO)
		return (struct gem_handle){
			.entry = entry,
			.object = entry->object,
			.owner = (pid_t)entry->owner_pid,
		};
	bo = kfd->bo_entries[entry->bo];
	return (struct gem_handle){
		.entry = entry,
		.object = bo->has_owner_pid ? bo->object : 0,
		.owner = (pid_t)bo->owner_pid,
		.bo = made[entry->bo],
	};
}

static int take_all(struct restored_task *task, struct gem_handles *handles)
{
	const CriuKfd *kfd = task->kfd;
	_cleanup_free_ uint32_t *made = count_made(kfd);

	handles->list = calloc(kfd->n_gem_handles, sizeof(*handles->list));
	if (!made || !handles->list)
		return -ENOMEM;
	for (size_t i = 0; i < kfd->n_gem_handles; i++)
		handles->list[handles->count++] = describe(kfd, made, kfd->gem_handles[i]);
	return 0;
}

int gem_handles_take(struct restored_task *task)
{
	ProtobufCBinaryData *priv_data = &task->kfd->priv_data;
	int ret;

	if (!task->kfd->n_gem_handles)
		return 0;
	kfd_priv_unmark(priv_data->data, priv_data->len);
	task->gem_handles = calloc(1, sizeof(*task->gem_handles));
	ret = task->gem_handles ? take_all(task, task->gem_handles) : -ENOMEM;
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

static int fail(const struct gem_importer *importer, const GemHandleEntry *entry, int ret,
		const char *action)
{
	return log_error(ret, "kfd %d: GEM handle %u of GPU 0x%04x: cannot %s",
			 importer->session->task.kfd_id, entry->handle, importer->gpu_id, action);
}

/* The task has imported the object as a BO. */
static int fetch_own(const struct gem_importer *importer, const struct gem_handle *handle,
		     int *ret_fd)
{
	struct object object;
	int ret = restore_shared_find(importer->session->shared, handle->object, &object);

	if (!ret)
		ret = host_fetch_fd(object.store_id);
	if (ret < 0)
		return fail(importer, handle->entry, ret, "import its BO");
	*ret_fd = ret;
	return 0;
}

/* Only another task has a BO of the object. */
static int fetch_other(const struct gem_importer *importer, const struct gem_handle *handle,
		       int *ret_fd)
{
	struct awaited_object awaited = {
		.number = handle->object,
		.size = handle->entry->size,
		.gpu_id = importer->gpu_id,
		.owner = handle->owner,
	};
	struct object object = { 0 };

	(void)snprintf(awaited.name, sizeof(awaited.name), "kfd %d: GEM handle %u of GPU 0x%04x",
		       importer->session->task.kfd_id, handle->entry->handle, importer->gpu_id);
	return imports_fetch(importer->session, &awaited, &object, ret_fd);
}

/* *@ret_fetched: the descriptor, if the caller must close it. */
static int find_dmabuf(const struct gem_importer *importer, const struct gem_handle *handle,
		       int *ret_fetched)
{
	int ret;

	if (!handle->object)
		return (int)importer->state->bos[handle->bo].dmabuf_fd;
	ret = handle->entry->bo == IMAGE_NO_BO ? fetch_other(importer, handle, ret_fetched)
					       : fetch_own(importer, handle, ret_fetched);
	return ret < 0 ? ret : *ret_fetched;
}

static int import(struct gem_importer *importer, const struct gem_handle *handle)
{
	const uint64_t wanted = KFD_HANDLE(importer->gpu_id, handle->entry->handle);
	_cleanup_close_ int fetched = -1;
	uint32_t number = 0;
	int ret = fillers_reach(&importer->fillers, wanted);

	if (!ret)
		ret = find_dmabuf(importer, handle, &fetched);
	if (ret < 0)
		return ret;
	ret = render_node_gem_import(importer->fillers.fd, ret, &number);
	if (ret < 0)
		return fail(importer, handle->entry, ret, "import its BO");
	return fillers_check(&importer->fillers, KFD_HANDLE(importer->gpu_id, number), wanted);
}

/* The CPU may map the object of another task through the render file. */
static int note_mapping(const struct gem_importer *importer, const struct gem_handle *handle)
{
	const struct restored_task *task = &importer->session->task;
	struct mapped_bo mapped = {
		.saved_minor = topology_find_gpu(&task->saved, importer->gpu_id)->drm_render_minor,
		.size = handle->entry->size,
		.old_offset = handle->entry->offset,
	};
	int ret;

	if (handle->entry->bo != IMAGE_NO_BO)
		return 0;
	ret = render_node_gem_offset(importer->fillers.fd, handle->entry->handle,
				     &mapped.new_offset);
	if (!ret)
		ret = mappings_add_bo(task->mappings, &mapped);
	return ret < 0 ? fail(importer, handle->entry, ret, "record where the CPU can map it") : 0;
}

static int map(const struct gem_importer *importer, const struct gem_handle *handle)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < handle->entry->n_mappings; i++) {
		const DrmVmEntry *entry = handle->entry->mappings[i];
		const struct render_mapping mapping = {
			.addr = entry->addr,
			.size = entry->size,
			.offset = entry->offset,
			.flags = entry->flags,
		};

		ret = render_node_gem_map(importer->fillers.fd, handle->entry->handle, &mapping);
		if (ret < 0)
			(void)log_error(ret,
					"kfd %d: GEM handle %u of GPU 0x%04x: cannot map %" PRIu64
					" bytes at 0x%" PRIx64,
					importer->session->task.kfd_id, handle->entry->handle,
					importer->gpu_id, mapping.size, mapping.addr);
	}
	return ret;
}

/* Several tasks may have a handle of the object. They note the same. */
static int note_metadata(const struct gem_importer *importer, const GemHandleEntry *entry)
{
	struct render_metadata metadata = {
		.flags = entry->metadata_flags,
		.tiling = entry->tiling,
		.size = (uint32_t)entry->metadata.len,
	};
	int ret;

	if (!entry->has_metadata)
		return 0;
	memcpy(metadata.data, entry->metadata.data, metadata.size);
	ret = render_node_gem_set_metadata(importer->fillers.fd, entry->handle, &metadata);
	return ret < 0 ? fail(importer, entry, ret, "set its metadata") : 0;
}

static int make_of_gpu(struct gem_importer *importer, const struct gem_handles *handles)
{
	size_t count = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < handles->count; i++) {
		const struct gem_handle *handle = &handles->list[i];

		if (handle->entry->gpu_id != importer->gpu_id)
			continue;
		count++;
		ret = import(importer, handle);
		if (!ret)
			ret = note_mapping(importer, handle);
		if (!ret)
			ret = map(importer, handle);
		if (!ret)
			ret = note_metadata(importer, handle->entry);
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

	for (size_t i = 0; task->gem_handles && !ret && i < task->saved.num_nodes; i++) {
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
		ret = make_of_gpu(&importer, task->gem_handles);
	}
	return ret;
}
