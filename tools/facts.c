// SPDX-License-Identifier: GPL-2.0-only
/* What show.c and show_json.c print, and check_process.c. */
#include "facts.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "image/image.h"
#include "kernel/kfd.h"

#define EXTENTS_AT_ONCE 256u

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

/* Asks the file system for the next extents from @from on. Return: their number, or 0 at the end
 * and on errors. */
static unsigned int next_extents(int fd, uint64_t from, struct fiemap *map)
{
	*map = (struct fiemap){
		.fm_start = from,
		.fm_length = FIEMAP_MAX_OFFSET - from,
		.fm_flags = FIEMAP_FLAG_SYNC,
		.fm_extent_count = EXTENTS_AT_ONCE,
	};
	return xioctl(fd, FS_IOC_FIEMAP, map) < 0 ? 0 : map->fm_mapped_extents;
}

static uint64_t count_shared(int fd, struct fiemap *map)
{
	uint64_t shared = 0, from = 0, end = 0;

	do {
		unsigned int count = next_extents(fd, end, map);

		from = end;
		for (unsigned int i = 0; i < count && i < EXTENTS_AT_ONCE; i++) {
			const struct fiemap_extent *extent = &map->fm_extents[i];

			if (extent->fe_flags & FIEMAP_EXTENT_SHARED)
				shared += extent->fe_length;
			end = extent->fe_logical + extent->fe_length;
		}
	} while (end > from);
	return shared;
}

uint64_t facts_count_shared(int id, uint32_t gpu_id)
{
	_cleanup_free_ struct fiemap *map =
		malloc(sizeof(*map) + EXTENTS_AT_ONCE * sizeof(map->fm_extents[0]));
	_cleanup_close_ int fd = -1;
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, gpu_id);
	fd = fd_open_at(host_image_dir(), name, O_RDONLY | O_NONBLOCK);
	return map && fd >= 0 ? count_shared(fd, map) : 0;
}
