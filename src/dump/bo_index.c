// SPDX-License-Identifier: GPL-2.0-only
/* BOs in the order in which render nodes have them, since some processes have a hundred thousand,
 * and as many mappings. */
#include "dump/bo_index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/kfd.h"

const struct topology_node *bo_index_find_gpu(const struct kfd_state *state,
					      const struct topology *topology, uint32_t user_gpu_id)
{
	for (uint32_t i = 0; i < state->num_devices; i++) {
		if (state->devices[i].user_gpu_id == user_gpu_id)
			return topology_find_actual(topology, state->devices[i].actual_gpu_id);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct bo_index_entry *one = a, *other = b;

	if (one->render_minor != other->render_minor)
		return one->render_minor < other->render_minor ? -1 : 1;
	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return one->index < other->index ? -1 : one->index > other->index;
}

static int compare_inodes(const void *a, const void *b)
{
	const struct bo_index_entry *const *one = a, *const *other = b;

	if ((*one)->inode != (*other)->inode)
		return (*one)->inode < (*other)->inode ? -1 : 1;
	return (*one)->index < (*other)->index ? -1 : (*one)->index > (*other)->index;
}

static int add_place(struct bo_index *places, const struct kfd_bo_bucket *bo, uint32_t index,
		     uint32_t render_minor)
{
	struct stat file;

	if (fstat((int)bo->dmabuf_fd, &file) < 0)
		return -errno;
	places->places[places->count++] = (struct bo_index_entry){
		.render_minor = render_minor,
		.index = index,
		.offset = bo->offset,
		.size = bo->size,
		.inode = file.st_ino,
	};
	return 0;
}

static int add_all(const struct kfd_state *state, const struct topology *topology,
		   struct bo_index *places)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];
		const struct topology_node *gpu = bo_index_find_gpu(state, topology, bo->gpu_id);

		if (gpu && bo->alloc_flags & KFD_BO_WITH_CONTENTS)
			ret = add_place(places, bo, i, gpu->drm_render_minor);
	}
	return ret;
}

static void sort_all(struct bo_index *places)
{
	qsort(places->places, places->count, sizeof(*places->places), compare);
	for (size_t i = 0; i < places->count; i++)
		places->by_inode[i] = &places->places[i];
	qsort(places->by_inode, places->count, sizeof(*places->by_inode), compare_inodes);
}

int bo_index_init(const struct kfd_state *state, const struct topology *topology,
		  struct bo_index *ret_places)
{
	const size_t room = (size_t)state->num_bos + 1;
	struct bo_index places = { .places = calloc(room, sizeof(*places.places)),
				   .by_inode = calloc(room, sizeof(*places.by_inode)) };
	int ret = places.places && places.by_inode ? add_all(state, topology, &places) : -ENOMEM;

	if (ret < 0) {
		bo_index_done(&places);
		return ret;
	}
	sort_all(&places);
	*ret_places = places;
	return 0;
}

void bo_index_done(struct bo_index *places)
{
	free(places->places);
	free(places->by_inode);
	*places = (struct bo_index){ 0 };
}

/* Places are apart but for those of one object, so it is the last that begins no later, or
 * one like it before. */
const struct bo_index_entry *bo_index_find_offset(const struct bo_index *places,
						  uint32_t render_minor, uint64_t offset)
{
	const struct bo_index_entry wanted = { .render_minor = render_minor,
					       .index = UINT32_MAX,
					       .offset = offset };
	const struct bo_index_entry *at = places->places;
	size_t first = 0, end = places->count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (compare(&at[middle], &wanted) <= 0)
			first = middle + 1;
		else
			end = middle;
	}
	if (!first || at[first - 1].render_minor != render_minor ||
	    offset - at[first - 1].offset >= at[first - 1].size)
		return NULL;
	first--;
	while (first && at[first - 1].render_minor == render_minor &&
	       at[first - 1].offset == at[first].offset)
		first--;
	return &at[first];
}

const struct bo_index_entry *bo_index_find_inode(const struct bo_index *places, uint64_t inode)
{
	size_t first = 0, end = places->count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (places->by_inode[middle]->inode < inode)
			first = middle + 1;
		else
			end = middle;
	}
	if (first == places->count || places->by_inode[first]->inode != inode)
		return NULL;
	return places->by_inode[first];
}
