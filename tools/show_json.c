// SPDX-License-Identifier: GPL-2.0-only
/* Prints what the images hold as JSON. The manual page criu-amdgpu(1) describes the fields, which
 * keep name and meaning: FORMAT changes with them. */
#include "show_json.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "facts.h"
#include "image/image.h"
#include "image/image_validate.h"
#include "images.h"
#include "text.h"
#include "tool.h"

#define FORMAT 1

/* Half a description is worse than none. */
static void need(bool is_there)
{
	if (is_there)
		return;
	(void)log_error(-ENOMEM, "images: cannot describe them");
	exit(TOOL_TROUBLE);
}

static void add(json_object *object, const char *name, json_object *value)
{
	need(object && value && !json_object_object_add(object, name, value));
}

static void append(json_object *list, json_object *value)
{
	need(list && value && !json_object_array_add(list, value));
}

static json_object *number(uint64_t value)
{
	return json_object_new_uint64(value);
}

static json_object *gpu_id_of(uint32_t gpu_id)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "0x%04x", gpu_id);
	return json_object_new_string(text);
}

static json_object *image_of(const char *pattern, int id)
{
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), pattern, id);
	return json_object_new_string(name);
}

static json_object *describe_sum(const struct bo_sum *sum)
{
	json_object *object = json_object_new_object();

	add(object, "count", number(sum->count));
	add(object, "bytes", number(sum->bytes));
	add(object, "largest", number(sum->largest));
	add(object, "with_checksum", number(sum->with_checksum));
	return object;
}

static json_object *describe_gpu(const struct tool_image *image, const KfdDeviceEntry *gpu)
{
	struct bo_sum contents = facts_sum(image->kfd, BO_WITH_CONTENTS, gpu->gpu_id);
	json_object *object = json_object_new_object();
	char text[TEXT_UNIQUE_ID];

	add(object, "gpu_id", gpu_id_of(gpu->gpu_id));
	if (gpu->has_actual_gpu_id)
		add(object, "actual_gpu_id", gpu_id_of(gpu->actual_gpu_id));
	if (gpu->unique_id)
		add(object, "unique_id", json_object_new_string(text_unique_id(gpu, text)));
	if (gpu->has_location_id)
		add(object, "pci", json_object_new_string(text_pci(gpu, text)));
	if (gpu->has_gfx_target_version)
		add(object, "isa", json_object_new_string(text_gfx(gpu->gfx_target_version, text)));
	add(object, "render_minor", number(gpu->drm_render_minor));
	add(object, "vram_bytes", number(gpu->vram_size));
	add(object, "contents", describe_sum(&contents));
	add(object, "shared_bytes", number(facts_count_shared(image->id, gpu->gpu_id)));
	return object;
}

static json_object *describe_gpus(const struct tool_image *image)
{
	const CriuKfd *kfd = image->kfd;
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < kfd->n_device_entries; i++) {
		if (kfd->device_entries[i]->gpu_id)
			append(list, describe_gpu(image, kfd->device_entries[i]));
	}
	return list;
}

static json_object *describe_bos(const CriuKfd *kfd)
{
	json_object *object = json_object_new_object();

	for (size_t i = 0; i < BO_KINDS; i++) {
		struct bo_sum sum = facts_sum(kfd, BO_OF_KIND, facts_bo_kinds[i].flag);

		add(object, facts_bo_kinds[i].name, describe_sum(&sum));
	}
	return object;
}

static json_object *describe_queues(const struct tool_image *image)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < image->num_queues; i++) {
		json_object *queue = json_object_new_object();

		add(queue, "id", number(image->queues[i].id));
		add(queue, "type", json_object_new_string(facts_queue_type(image->queues[i].type)));
		add(queue, "gpu_id", gpu_id_of(image->queues[i].gpu_id));
		append(list, queue);
	}
	return list;
}

static json_object *describe_shared(const CriuKfd *kfd)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];
		json_object *object;

		if (!bo->has_object)
			continue;
		object = json_object_new_object();
		add(object, "object", number(bo->object));
		add(object, "owner_pid", number(bo->has_owner_pid ? bo->owner_pid : kfd->pid));
		add(object, "is_import", json_object_new_boolean(bo->has_owner_pid));
		add(object, "by_share_handle", json_object_new_boolean(bo->by_share_handle));
		add(object, "gpu_id", gpu_id_of(bo->gpu_id));
		add(object, "bo", number(i));
		add(object, "bytes", number(bo->size));
		append(list, object);
	}
	return list;
}

static json_object *describe_gem_handles(const CriuKfd *kfd)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < kfd->n_gem_handles; i++) {
		const GemHandleEntry *handle = kfd->gem_handles[i];
		json_object *object = json_object_new_object();

		add(object, "gpu_id", gpu_id_of(handle->gpu_id));
		add(object, "handle", number(handle->handle));
		if (handle->bo == IMAGE_NO_BO) {
			add(object, "object", number(handle->object));
			add(object, "owner_pid", number(handle->owner_pid));
			add(object, "bytes", number(handle->size));
		} else {
			add(object, "bo", number(handle->bo));
			add(object, "bytes", number(kfd->bo_entries[handle->bo]->size));
		}
		add(object, "mappings", number(handle->n_mappings));
		append(list, object);
	}
	return list;
}

static json_object *describe_parameters(const SavedOn *saved)
{
	json_object *object = json_object_new_object();

#define ADD(name)              \
	if (saved->has_##name) \
		add(object, #name, json_object_new_int(saved->name));
	SAVED_ON_PARAMETERS(ADD)
#undef ADD
	return object;
}

static json_object *describe_saved_on(const SavedOn *saved)
{
	json_object *object = json_object_new_object();

	if (saved->has_time)
		add(object, "time", number(saved->time));
	if (saved->has_kfd_minor)
		add(object, "kfd_minor", number(saved->kfd_minor));
	if (saved->has_drained_ms)
		add(object, "drained_ms", number(saved->drained_ms));
#define ADD(name)        \
	if (saved->name) \
		add(object, #name, json_object_new_string(saved->name));
	SAVED_ON_TEXTS(ADD)
#undef ADD
	add(object, "parameters", describe_parameters(saved));
	return object;
}

static json_object *describe_process(const struct tool_image *image)
{
	const struct kfd_layout *layout = &image->priv.layout;
	json_object *object = json_object_new_object();
	const CriuKfd *kfd = image->kfd;
	const struct bo_sum shared = facts_sum(kfd, BO_SHARED, 0),
			    imports = facts_sum(kfd, BO_IMPORT, 0);

	add(object, "image", image_of(IMAGE_KFD_NAME, image->id));
	add(object, "pid", number(kfd->pid));
	add(object, "writer", json_object_new_string(facts_writer(kfd)));
	if (kfd->saved_on)
		add(object, "saved_on", describe_saved_on(kfd->saved_on));
	add(object, "gpus", describe_gpus(image));
	add(object, "bos", describe_bos(kfd));
	add(object, "shared", describe_sum(&shared));
	add(object, "imported", describe_sum(&imports));
	add(object, "shared_bos", describe_shared(kfd));
	add(object, "gem_handles", describe_gem_handles(kfd));
	add(object, "objects", number(kfd->num_of_objects));
	if (!layout->is_known)
		return object;
	add(object, "queues", describe_queues(image));
	add(object, "events",
	    number(image->priv.num_objects - image->num_queues - layout->num_svm_ranges));
	add(object, "svm_ranges", number(layout->num_svm_ranges));
	add(object, "has_svm_ranges", json_object_new_boolean(layout->num_svm_ranges > 0));
	return object;
}

static json_object *describe_render(const struct tool_image *image)
{
	const CriuRenderNode *node = image->render;
	json_object *object = json_object_new_object();

	add(object, "image", image_of(IMAGE_RENDER_NAME, image->id));
	add(object, "gpu_id", gpu_id_of(node->gpu_id));
	if (node->has_drm_render_minor)
		add(object, "render_minor", number(node->drm_render_minor));
	if (node->has_compute_pid)
		add(object, "compute_pid", number(node->compute_pid));
	add(object, "gem_objects", number(node->num_of_bos));
	return object;
}

static json_object *describe_dmabuf(const struct tool_image *image)
{
	const CriuDmabufNode *dmabuf = image->dmabuf;
	json_object *object = json_object_new_object();

	add(object, "image", image_of(IMAGE_DMABUF_NAME, image->id));
	if (dmabuf->has_object) {
		add(object, "object", number(dmabuf->object));
		add(object, "owner_pid", number(dmabuf->owner_pid));
	}
	return object;
}

static json_object *describe(const struct tool_images *images)
{
	json_object *root = json_object_new_object(), *processes = json_object_new_array(),
		    *plain = json_object_new_array(), *renders = json_object_new_array(),
		    *dmabufs = json_object_new_array();

	add(root, "format", number(FORMAT));
	add(root, "processes", processes);
	add(root, "kfd_without_state", plain);
	add(root, "render_nodes", renders);
	add(root, "dma_bufs", dmabufs);
	for (size_t i = 0; i < images->count; i++) {
		const struct tool_image *image = &images->list[i];

		if (image->kind == IMAGE_DMABUF)
			append(dmabufs, describe_dmabuf(image));
		else if (image->kind == IMAGE_RENDER)
			append(renders, describe_render(image));
		else if (image->kfd->num_of_gpus)
			append(processes, describe_process(image));
		else
			append(plain, image_of(IMAGE_KFD_NAME, image->id));
	}
	return root;
}

int show_json(const struct tool_images *images)
{
	json_object *root = describe(images);
	const char *text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY);

	need(text);
	(void)puts(text);
	json_object_put(root);
	return TOOL_YES;
}
