// SPDX-License-Identifier: GPL-2.0-only
/* Refuses images with values that no kernel can have reported. Harmless values pass, because other
 * programs write images too. */
#include "image/image_validate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image.h"
#include "image/image_priv.h"
#include "kernel/kfd.h"
#include "kernel/render_node.h"

/* The type that starts each object in the private data. */
#define OBJECT_TYPE_SIZE 4

/* In messages an image is "kfd 7" or "render node 7", which is the @image of these functions. */
#define IMAGE_TEXT 32

static int check_minor(const char *image, uint32_t gpu_id, uint32_t number)
{
	if (!number)
		return log_error(-EINVAL, "%s: GPU 0x%04x of the image has no render node", image,
				 gpu_id);
	if (number < RENDER_NODE_MINOR_FIRST || number > RENDER_NODE_MINOR_LAST)
		return log_error(
			-EINVAL,
			"%s: GPU 0x%04x has render minor %u, which no render node can have", image,
			gpu_id, number);
	return 0;
}

static int check_gpu_id(const char *image, uint32_t gpu_id)
{
	if (gpu_id <= KFD_GPU_ID_MAX)
		return 0;
	return log_error(-EINVAL, "%s: 0x%x is no gpu_id: it has more than 16 bits", image, gpu_id);
}

static int check_device(const char *image, const KfdDeviceEntry *device)
{
	int ret;

	if (device->n_iolinks > TOPOLOGY_ENTRIES_MAX)
		return log_error(-EINVAL, "%s: node %u has %zu links, more than %d", image,
				 device->node_id, device->n_iolinks, TOPOLOGY_ENTRIES_MAX);
	if (!device->gpu_id)
		return 0;
	ret = check_gpu_id(image, device->gpu_id);
	if (!ret)
		ret = check_gpu_id(image, device->actual_gpu_id);
	return ret < 0 ? ret : check_minor(image, device->gpu_id, device->drm_render_minor);
}

static int check_distinct(const char *image, const KfdDeviceEntry *a, const KfdDeviceEntry *b)
{
	if (a->node_id == b->node_id)
		return log_error(-EINVAL, "%s: node %u is in the image twice", image, a->node_id);
	if (!a->gpu_id || !b->gpu_id)
		return 0;
	if (a->gpu_id == b->gpu_id)
		return log_error(-EINVAL, "%s: GPU 0x%04x is in the image twice", image, a->gpu_id);
	if (a->drm_render_minor == b->drm_render_minor)
		return log_error(-EINVAL, "%s: GPUs 0x%04x and 0x%04x both have renderD%u", image,
				 a->gpu_id, b->gpu_id, a->drm_render_minor);
	return 0;
}

static int check_devices(const char *image, const CriuKfd *kfd)
{
	size_t num_gpus = 0;
	int ret = 0;

	if (kfd->n_device_entries > TOPOLOGY_ENTRIES_MAX)
		return log_error(-EINVAL, "%s: the image has %zu nodes, more than %d", image,
				 kfd->n_device_entries, TOPOLOGY_ENTRIES_MAX);
	for (size_t i = 0; !ret && i < kfd->n_device_entries; i++) {
		num_gpus += kfd->device_entries[i]->gpu_id != 0;
		ret = check_device(image, kfd->device_entries[i]);
		for (size_t j = 0; !ret && j < i; j++)
			ret = check_distinct(image, kfd->device_entries[j], kfd->device_entries[i]);
	}
	if (ret < 0)
		return ret;
	if (num_gpus != kfd->num_of_gpus)
		return log_error(-EINVAL, "%s: the image says %u GPUs and has %zu", image,
				 kfd->num_of_gpus, num_gpus);
	return 0;
}

/* For BOs with contents. The program or the driver chooses the ranges of other BOs. */
static const char *find_wrong_range(const KfdBoEntry *bo)
{
	if (bo->size % KFD_GPU_PAGE)
		return "a size of no whole pages";
	if (bo->addr % KFD_GPU_PAGE)
		return "an address inside a page";
	if (bo->offset % KFD_GPU_PAGE)
		return "an mmap offset inside a page";
	if (bo->offset > UINT64_MAX - bo->size)
		return "an mmap offset too high for its size";
	return NULL;
}

static const char *find_wrong_object(const KfdBoEntry *bo)
{
	if (bo->has_owner_pid && !bo->has_object)
		return "the owner of an object, but no object";
	if (bo->by_share_handle && !bo->has_object)
		return "a share handle, but no object";
	if (!bo->has_object)
		return NULL;
	if (!bo->object || bo->object > IMAGE_OBJECTS_MAX)
		return "an impossible number of an object";
	if (!(bo->alloc_flags & KFD_BO_WITH_CONTENTS))
		return "an object, but is of a kind that cannot be shared";
	if (bo->has_owner_pid && (!bo->owner_pid || bo->owner_pid > INT32_MAX))
		return "an owner that is no process";
	return NULL;
}

static int check_bo(const char *image, const CriuKfd *kfd, size_t index)
{
	const KfdBoEntry *bo = kfd->bo_entries[index];
	const KfdDeviceEntry *gpu = image_find_device(kfd, bo->gpu_id);
	uint32_t kind = bo->alloc_flags & KFD_BO_KINDS;
	const char *wrong = NULL;

	if (!gpu)
		return log_error(-EINVAL,
				 "%s: BO %zu is of GPU 0x%04x, which the image does not have",
				 image, index, bo->gpu_id);
	if (!kfd_bo_has_one_kind(bo->alloc_flags))
		return log_error(-EINVAL, "%s: BO %zu is of an unknown kind, flags 0x%x", image,
				 index, bo->alloc_flags);
	if (!bo->size)
		wrong = "no size";
	else if (bo->addr > UINT64_MAX - bo->size)
		wrong = "an address too high for its size";
	else if (kind & KFD_BO_WITH_CONTENTS)
		wrong = find_wrong_range(bo);
	if (!wrong)
		wrong = find_wrong_object(bo);
	if (wrong)
		return log_error(-EINVAL,
				 "%s: BO %zu, %" PRIu64 " bytes at 0x%" PRIx64
				 " with offset 0x%" PRIx64 ", has %s",
				 image, index, bo->size, bo->addr, bo->offset, wrong);
	if (kind == KFD_BO_VRAM && gpu->vram_size && bo->size > gpu->vram_size)
		return log_error(-EINVAL,
				 "%s: BO %zu has %" PRIu64 " bytes, and GPU 0x%04x has %" PRIu64
				 " of VRAM",
				 image, index, bo->size, bo->gpu_id, gpu->vram_size);
	return 0;
}

/* The part of an address space that a BO uses: GPU addresses, or the mmap offsets of its render
 * node. */
struct span {
	uint32_t gpu_id;
	uint64_t from;
	uint64_t to;
	size_t bo;
};

static int compare_spans(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	return ORDER(a->gpu_id, b->gpu_id) ?: ORDER(a->from, b->from) ?: ORDER(a->bo, b->bo);
}

/* Two BOs that were one object in the process both have its mmap offset. Each import has an address
 * of its own. So has each of the copies that a forced dump makes of them. */
static bool may_coexist(const struct span *a, const struct span *b, bool by_offset)
{
	if (a->gpu_id != b->gpu_id || b->from >= a->to)
		return true;
	return by_offset && a->from == b->from && a->to == b->to;
}

/* Lists mmap offsets, or GPU addresses if not @by_offset. Leaves out user memory and doorbells, of
 * which several BOs may have the same range, and BOs without an address. */
static size_t list_spans(const CriuKfd *kfd, bool by_offset, struct span *spans)
{
	size_t count = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];
		uint64_t from = by_offset ? bo->offset : bo->addr;

		if (bo->alloc_flags & KFD_BO_WITH_CONTENTS && (by_offset || bo->addr))
			spans[count++] = (struct span){ bo->gpu_id, from, from + bo->size, i };
	}
	return count;
}

static int check_spans(const char *image, const CriuKfd *kfd, bool by_offset, struct span *spans)
{
	size_t count = list_spans(kfd, by_offset, spans);

	qsort(spans, count, sizeof(*spans), compare_spans);
	for (size_t i = 1; i < count; i++) {
		const struct span *a = &spans[i - 1], *b = &spans[i];

		if (!may_coexist(a, b, by_offset))
			return log_error(
				-EINVAL,
				"%s: BOs %zu and %zu of GPU 0x%04x have the same %s, 0x%" PRIx64,
				image, a->bo, b->bo, a->gpu_id,
				by_offset ? "mmap offsets" : "addresses", b->from);
	}
	return 0;
}

static int check_overlaps(const char *image, const CriuKfd *kfd)
{
	_cleanup_free_ struct span *spans = calloc(kfd->n_bo_entries + 1, sizeof(*spans));
	int ret;

	if (!spans)
		return log_error(-ENOMEM, "%s: cannot verify", image);
	ret = check_spans(image, kfd, false, spans);
	return ret < 0 ? ret : check_spans(image, kfd, true, spans);
}

/* Checks the sums for one GPU, without overflow. Later code can add sizes without a check. */
static int check_total_size(const char *image, const CriuKfd *kfd, const KfdDeviceEntry *gpu)
{
	uint64_t contents = 0, vram = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		/* An import has the memory of its owner. */
		if (bo->gpu_id != gpu->gpu_id || !(bo->alloc_flags & KFD_BO_WITH_CONTENTS) ||
		    bo->has_owner_pid)
			continue;
		if (bo->size > IMAGE_CONTENTS_MAX - contents)
			return log_error(-EINVAL,
					 "%s: the BOs of GPU 0x%04x are larger than any file",
					 image, gpu->gpu_id);
		contents += bo->size;
		vram += bo->alloc_flags & KFD_BO_VRAM ? bo->size : 0;
	}
	if (gpu->vram_size && vram > gpu->vram_size)
		return log_error(-EINVAL,
				 "%s: the BOs of GPU 0x%04x have %" PRIu64
				 " bytes of VRAM, but the GPU has %" PRIu64,
				 image, gpu->gpu_id, vram, gpu->vram_size);
	return 0;
}

static int check_bos(const char *image, const CriuKfd *kfd)
{
	int ret = 0;

	if (kfd->n_bo_entries != kfd->num_of_bos || kfd->n_bo_entries > UINT32_MAX)
		return log_error(-EINVAL, "%s: the image says %" PRIu64 " BOs and has %zu", image,
				 kfd->num_of_bos, kfd->n_bo_entries);
	for (size_t i = 0; !ret && i < kfd->n_bo_entries; i++)
		ret = check_bo(image, kfd, i);
	for (size_t i = 0; !ret && i < kfd->n_device_entries; i++) {
		if (kfd->device_entries[i]->gpu_id)
			ret = check_total_size(image, kfd, kfd->device_entries[i]);
	}
	return ret < 0 ? ret : check_overlaps(image, kfd);
}

/* The objects that the process makes: those of entries without an owner. */
static size_t list_made(const CriuKfd *kfd, uint32_t *made)
{
	size_t count = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (bo->has_object && !bo->has_owner_pid)
			made[count++] = bo->object;
	}
	qsort(made, count, sizeof(*made), compare_u32);
	return count;
}

/* Each object is made once, and the process makes those that it imports from itself. Objects of
 * other processes are in other images. */
static int check_objects(const char *image, const CriuKfd *kfd)
{
	_cleanup_free_ uint32_t *made = calloc(kfd->n_bo_entries + 1, sizeof(*made));
	size_t count;

	if (!made)
		return log_error(-ENOMEM, "%s: cannot verify", image);
	count = list_made(kfd, made);
	for (size_t i = 1; i < count; i++) {
		if (made[i] == made[i - 1])
			return log_error(-EINVAL, "%s: two BOs make object %u", image, made[i]);
	}
	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (!bo->has_owner_pid || bo->owner_pid != kfd->pid ||
		    bsearch(&bo->object, made, count, sizeof(*made), compare_u32))
			continue;
		return log_error(
			-EINVAL,
			"%s: BO %zu is imported from object %u of the same process, which no BO makes",
			image, i, bo->object);
	}
	return 0;
}

static const char *find_wrong_mapping(const DrmVmEntry *mapping, uint64_t bo_size)
{
	if (!mapping->size || (mapping->addr | mapping->size | mapping->offset) % KFD_GPU_PAGE)
		return "a mapping that is no whole pages";
	if (mapping->size > bo_size || mapping->offset > bo_size - mapping->size)
		return "a mapping outside of its BO";
	return mapping->addr > UINT64_MAX - mapping->size ? "a mapping too high for its size"
							  : NULL;
}

static const char *find_wrong_other(const CriuKfd *kfd, const GemHandleEntry *handle)
{
	if (!handle->has_object || !handle->has_owner_pid || !handle->has_size)
		return "neither a BO nor an object";
	if (!handle->object || handle->object > IMAGE_OBJECTS_MAX)
		return "an impossible object";
	if (!handle->owner_pid || handle->owner_pid > INT32_MAX || handle->owner_pid == kfd->pid)
		return "an impossible owner";
	return !handle->size || (handle->size | handle->offset) % KFD_GPU_PAGE
		       ? "an object that is no whole pages"
		       : NULL;
}

/* The BO of the process that it names, or else the object of another one. */
static const char *find_wrong_bo(const CriuKfd *kfd, const GemHandleEntry *handle,
				 uint64_t *ret_size)
{
	const KfdBoEntry *bo = handle->bo < kfd->n_bo_entries ? kfd->bo_entries[handle->bo] : NULL;

	*ret_size = bo ? bo->size : handle->size;
	if (handle->bo == IMAGE_NO_BO)
		return find_wrong_other(kfd, handle);
	return bo && bo->alloc_flags & KFD_BO_WITH_CONTENTS ? NULL : "no BO that can be shared";
}

static const char *find_wrong_metadata(const GemHandleEntry *handle)
{
	if (handle->has_metadata != handle->has_metadata_flags ||
	    handle->has_metadata != handle->has_tiling)
		return "one part of its metadata without the others";
	if (!handle->has_metadata)
		return NULL;
	return !handle->metadata.len || handle->metadata.len > RENDER_METADATA_MAX
		       ? "an impossible size of metadata"
		       : NULL;
}

/* @before: the entry before, or NULL. @lower: the entries of the same GPU before. */
static const char *find_wrong_handle(const CriuKfd *kfd, const GemHandleEntry *handle,
				     const GemHandleEntry *before, size_t lower)
{
	uint64_t size;
	const char *wrong = find_wrong_bo(kfd, handle, &size);

	if (!image_find_device(kfd, handle->gpu_id))
		return "a GPU that the image does not have";
	if (wrong)
		return wrong;
	if (!handle->handle || handle->handle > IMAGE_HANDLE_MAX(lower))
		return "an impossible number";
	if (before && (before->gpu_id > handle->gpu_id ||
		       (before->gpu_id == handle->gpu_id && before->handle >= handle->handle)))
		return "a lower number than the one before";
	for (size_t i = 0; !wrong && i < handle->n_mappings; i++)
		wrong = find_wrong_mapping(handle->mappings[i], size);
	return wrong ? wrong : find_wrong_metadata(handle);
}

static int check_gem_handles(const char *image, const CriuKfd *kfd)
{
	size_t lower = 0;

	for (size_t i = 0; i < kfd->n_gem_handles; i++) {
		const GemHandleEntry *handle = kfd->gem_handles[i];
		const GemHandleEntry *before = i ? kfd->gem_handles[i - 1] : NULL;
		const char *wrong;

		lower = before && before->gpu_id == handle->gpu_id ? lower + 1 : 0;
		wrong = find_wrong_handle(kfd, handle, before, lower);
		if (wrong)
			return log_error(-EINVAL, "%s: GEM handle %u of GPU 0x%04x has %s", image,
					 handle->handle, handle->gpu_id, wrong);
	}
	return 0;
}

bool image_validate_text(const char *text)
{
	size_t length = strnlen(text, SAVED_ON_TEXT);

	for (size_t i = 0; i < length; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return length < SAVED_ON_TEXT;
}

static int check_saved_on(int id, const SavedOn *saved)
{
	bool good = true;

#define CHECK(name) good &= !saved || !saved->name || image_validate_text(saved->name);
	SAVED_ON_TEXTS(CHECK)
#undef CHECK
	return good ? 0
		    : log_error(
			      -EINVAL,
			      "kfd %d: what it says of the machine of the dump is no text of at most %d printable characters",
			      id, SAVED_ON_TEXT - 1);
}

int image_validate_kfd(int id, const CriuKfd *kfd)
{
	char image[IMAGE_TEXT];
	int ret;

	(void)snprintf(image, sizeof(image), "kfd %d", id);
	ret = check_devices(image, kfd);
	if (!ret)
		ret = check_bos(image, kfd);
	if (!ret)
		ret = check_objects(image, kfd);
	if (!ret)
		ret = check_gem_handles(image, kfd);
	if (ret < 0)
		return ret;
	if (!kfd->num_of_gpus || !kfd->priv_data.len)
		return log_error(-EINVAL, "kfd %d: the image has no GPU or no private data", id);
	if (kfd->num_of_objects > kfd->priv_data.len / OBJECT_TYPE_SIZE)
		return log_error(
			-EINVAL,
			"kfd %d: the image says %u objects, and its private data has %zu bytes", id,
			kfd->num_of_objects, kfd->priv_data.len);
	ret = image_priv_validate(id, kfd);
	return ret ? ret : check_saved_on(id, kfd->saved_on);
}

int image_validate_render(int id, const CriuRenderNode *render)
{
	char image[IMAGE_TEXT];
	int ret;

	(void)snprintf(image, sizeof(image), "render node %d", id);
	for (size_t i = 0; i < render->n_owners; i++) {
		if (render->owners[i]->kfd_id > INT32_MAX)
			return log_error(-EINVAL, "%s: 0x%x is no id of an image", image,
					 render->owners[i]->kfd_id);
	}
	ret = check_gpu_id(image, render->gpu_id);
	if (!ret && render->has_drm_render_minor)
		ret = check_minor(image, render->gpu_id, render->drm_render_minor);
	return ret < 0 || !render->device ? ret : check_device(image, render->device);
}

/* The image names all processes with KFD state. A task would wait for another one forever, if it
 * came from a stream, which cannot be searched. */
static bool has_state(const CriuDmabufNode *dmabuf)
{
	for (size_t i = 0; i < dmabuf->n_owners; i++) {
		if (dmabuf->owners[i]->pid == dmabuf->owner_pid)
			return true;
	}
	return false;
}

int image_validate_dmabuf(int id, const CriuDmabufNode *dmabuf)
{
	for (size_t i = 0; i < dmabuf->n_owners; i++) {
		if (dmabuf->owners[i]->kfd_id > INT32_MAX)
			return log_error(-EINVAL, "dma-buf %d: names kfd %u", id,
					 dmabuf->owners[i]->kfd_id);
	}
	if (!dmabuf->has_object)
		return log_error(
			-EINVAL,
			"dma-buf %d: the image names no BO; only images of this plugin can be restored",
			id);
	if (!dmabuf->object || dmabuf->object > IMAGE_OBJECTS_MAX)
		return log_error(-EINVAL, "dma-buf %d: has the impossible object %u", id,
				 dmabuf->object);
	if (!dmabuf->owner_pid || dmabuf->owner_pid > INT32_MAX)
		return log_error(-EINVAL, "dma-buf %d: has an owner that is no process", id);
	return has_state(dmabuf)
		       ? 0
		       : log_error(
				 -EINVAL,
				 "dma-buf %d: process %u, which makes the BO, has no KFD state; the image is damaged",
				 id, dmabuf->owner_pid);
}
