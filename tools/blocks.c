// SPDX-License-Identifier: GPL-2.0-only
/* Asks the file system for the extents of a pages file (FIEMAP), and adds up the shared ones. */
#include "blocks.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "image/image.h"

#define EXTENTS_AT_ONCE 256u

/* The next extents from @from on, and their number, or 0 at the end and on errors. */
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

uint64_t blocks_count_shared(int id, uint32_t gpu_id)
{
	_cleanup_free_ struct fiemap *map =
		malloc(sizeof(*map) + EXTENTS_AT_ONCE * sizeof(map->fm_extents[0]));
	_cleanup_close_ int fd = -1;
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, gpu_id);
	fd = fd_open_at(host_image_dir(), name, O_RDONLY | O_NONBLOCK);
	return map && fd >= 0 ? count_shared(fd, map) : 0;
}
