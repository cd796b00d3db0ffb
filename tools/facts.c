// SPDX-License-Identifier: GPL-2.0-only
/* Each function sums up one thing of a message. show.c and show_json.c print the sums. */
#include "facts.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "kernel/kfd.h"

const struct bo_kind facts_bo_kinds[BO_KINDS] = {
	{ KFD_BO_VRAM, "VRAM" },       { KFD_BO_GTT, "GTT" },
	{ KFD_BO_USERPTR, "userptr" }, { KFD_BO_DOORBELL, "doorbell" },
	{ KFD_BO_MMIO_REMAP, "MMIO" },
};

static void add(struct bo_sum *sum, const KfdBoEntry *bo)
{
	sum->count++;
	sum->bytes += bo->size;
	sum->largest = bo->size > sum->largest ? bo->size : sum->largest;
	sum->with_checksum += bo->has_checksum;
}

struct bo_sum facts_sum_kind(const CriuKfd *kfd, uint32_t flag)
{
	struct bo_sum sum = { 0 };

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (kfd->bo_entries[i]->alloc_flags & flag)
			add(&sum, kfd->bo_entries[i]);
	}
	return sum;
}

struct bo_sum facts_sum_contents(const CriuKfd *kfd, uint32_t gpu_id)
{
	struct bo_sum sum = { 0 };

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (bo->gpu_id == gpu_id && bo->alloc_flags & KFD_BO_WITH_CONTENTS &&
		    !bo->has_owner_pid)
			add(&sum, bo);
	}
	return sum;
}

struct bo_sum facts_sum_shared(const CriuKfd *kfd)
{
	struct bo_sum sum = { 0 };

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (kfd->bo_entries[i]->has_object)
			add(&sum, kfd->bo_entries[i]);
	}
	return sum;
}

struct bo_sum facts_sum_imports(const CriuKfd *kfd)
{
	struct bo_sum sum = { 0 };

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (kfd->bo_entries[i]->has_owner_pid)
			add(&sum, kfd->bo_entries[i]);
	}
	return sum;
}

static int compare_owners(const void *left, const void *right)
{
	const struct owner_sum *a = left, *b = right;

	return ORDER(a->owner_pid, b->owner_pid);
}

static void add_object(struct owner_sum *owner, const KfdBoEntry *bo)
{
	add(&owner->bos, bo);
	owner->by_share_handle += bo->by_share_handle != 0;
	if (!owner->lowest_object || bo->object < owner->lowest_object)
		owner->lowest_object = bo->object;
	if (bo->object > owner->highest_object)
		owner->highest_object = bo->object;
}

/* The owner of a shared BO, or NULL without memory. */
static struct owner_sum *find_owner(struct owner_sum **owners, size_t *count, uint32_t pid)
{
	const struct owner_sum owner = { .owner_pid = pid };
	size_t i = 0;

	while (i < *count && (*owners)[i].owner_pid != pid)
		i++;
	if (i == *count && array_append(owners, count, sizeof(owner), &owner) < 0)
		return NULL;
	return &(*owners)[i];
}

int facts_sum_owners(const CriuKfd *kfd, struct owner_sum **ret_owners, size_t *ret_count)
{
	_cleanup_free_ struct owner_sum *owners = NULL;
	size_t count = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];
		struct owner_sum *owner;

		if (!bo->has_object)
			continue;
		owner = find_owner(&owners, &count, bo->has_owner_pid ? bo->owner_pid : kfd->pid);
		if (!owner)
			return -ENOMEM;
		add_object(owner, bo);
	}
	if (count)
		qsort(owners, count, sizeof(*owners), compare_owners);
	*ret_owners = take_ptr(&owners);
	*ret_count = count;
	return 0;
}

struct gem_sum facts_sum_gem_handles(const CriuKfd *kfd, uint32_t gpu_id)
{
	struct gem_sum sum = { 0 };

	for (size_t i = 0; i < kfd->n_gem_handles; i++) {
		const GemHandleEntry *handle = kfd->gem_handles[i];

		if (handle->gpu_id != gpu_id)
			continue;
		sum.lowest = sum.count++ ? sum.lowest : handle->handle;
		sum.highest = handle->handle;
		sum.others += handle->bo == IMAGE_NO_BO;
		sum.mappings += handle->n_mappings;
	}
	return sum;
}

void facts_read_objects(const struct kfd_priv *priv, struct objects *ret_objects)
{
	struct objects objects = { 0 };

	objects.known = !kfd_priv_list_queues(priv, &objects.queues, &objects.num_queues);
	objects.num_svm_ranges = priv->layout.num_svm_ranges;
	if (objects.known)
		objects.num_events =
			priv->num_objects - objects.num_queues - objects.num_svm_ranges;
	*ret_objects = objects;
}

void facts_objects_done(struct objects *objects)
{
	free(objects->queues);
}

const char *facts_queue_type(uint32_t type)
{
	switch (type) {
	case KFD_PRIV_QUEUE_COMPUTE:
		return "compute";
	case KFD_PRIV_QUEUE_SDMA:
		return "SDMA";
	case KFD_PRIV_QUEUE_SDMA_XGMI:
		return "SDMA over XGMI";
	default:
		return "other";
	}
}

/* Only this plugin writes these fields. The newer format of CRIU's plugin has handles. */
const char *facts_writer(const CriuKfd *kfd)
{
	if (kfd->has_xxh3 || kfd->has_num_of_mappings)
		return "this plugin";
	return kfd->n_bo_entries && kfd->bo_entries[0]->has_handle ? "CRIU's plugin, newer format"
								   : "CRIU's plugin";
}
