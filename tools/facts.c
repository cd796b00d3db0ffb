// SPDX-License-Identifier: GPL-2.0-only
/* What show.c and show_json.c print, and check_process.c. */
#include "facts.h"

#include "kernel/kfd.h"

const struct bo_kind facts_bo_kinds[BO_KINDS] = {
	{ KFD_BO_VRAM, "VRAM" },       { KFD_BO_GTT, "GTT" },
	{ KFD_BO_USERPTR, "userptr" }, { KFD_BO_DOORBELL, "doorbell" },
	{ KFD_BO_MMIO_REMAP, "MMIO" },
};

static bool counts(const KfdBoEntry *bo, enum bo_fact fact, uint32_t number)
{
	switch (fact) {
	case BO_OF_KIND:
		return bo->alloc_flags & number;
	case BO_WITH_CONTENTS:
		return bo->gpu_id == number && bo->alloc_flags & KFD_BO_WITH_CONTENTS &&
		       !bo->has_owner_pid;
	case BO_SHARED:
		return bo->has_object;
	default:
		return bo->has_owner_pid;
	}
}

struct bo_sum facts_sum(const CriuKfd *kfd, enum bo_fact fact, uint32_t number)
{
	struct bo_sum sum = { 0 };

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (!counts(bo, fact, number))
			continue;
		sum.count++;
		sum.bytes += bo->size;
		sum.largest = bo->size > sum.largest ? bo->size : sum.largest;
		sum.with_checksum += bo->has_checksum;
	}
	return sum;
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
