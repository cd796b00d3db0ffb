// SPDX-License-Identifier: GPL-2.0-only
/* Finds choices that make no difference: hives are full of GPUs that could change places, and large
 * machines of hives that could. Trying one of them settles the others. */
#include "map/twins.h"

/* Whether GPUs of one region are of one region, when local GPUs have changed
 * places as @image says. */
static bool keeps_regions(const struct link_graph *local, const uint16_t *image)
{
	int16_t region_image[GPU_SET_MAX];

	for (size_t i = 0; i < local->regions.count; i++)
		region_image[i] = NO_BLOCK;
	for (size_t i = 0; i < local->num_gpus; i++) {
		int from = local->regions.of[i], to = local->regions.of[image[i]];

		if ((from == NO_BLOCK) != (to == NO_BLOCK))
			return false;
		if (from == NO_BLOCK)
			continue;
		if (region_image[from] != NO_BLOCK && region_image[from] != to)
			return false;
		region_image[from] = (int16_t)to;
	}
	return true;
}

static bool keeps_links(const struct link_graph *local, const uint16_t *image, size_t gpu)
{
	struct gpu_set peers = { 0 };

	set_for_each (i, &local->xgmi[gpu])
		set_add(&peers, image[i]);
	return set_equal(&peers, &local->xgmi[image[gpu]]);
}

/* Whether all assignments that the attempt leaves stay such when local GPUs change places as @image
 * says: then what failed with one choice fails with its image. */
static bool is_symmetry(const struct search_problem *p, const struct gpu_set *left,
			const struct gpu_set *same, const uint16_t *image,
			const struct gpu_set *moved)
{
	if (p->rules >= SEARCH_TOGETHER && !keeps_regions(p->local, image))
		return false;
	set_for_each (i, moved) {
		if (p->rules >= SEARCH_LINKS && !keeps_links(p->local, image, i))
			return false;
		set_for_each (saved, &p->wanted) {
			if (set_has(&left[saved], i) != set_has(&left[saved], image[i]))
				return false;
			if (same && set_has(&same[saved], i) != set_has(&same[saved], image[i]))
				return false;
		}
	}
	return true;
}

bool are_twins(const struct search_problem *p, const struct gpu_set *left,
	       const struct gpu_set *same, const struct gpu_set *a, const struct gpu_set *b)
{
	struct gpu_set moved = *a, both = set_and(a, b);
	uint16_t image[GPU_SET_MAX];
	size_t j = set_next(b, 0);

	if (set_count(a) != set_count(b) || !set_is_empty(&both))
		return false;
	for (size_t i = 0; i < p->local->num_gpus; i++)
		image[i] = (uint16_t)i;
	set_for_each (i, a) {
		image[i] = (uint16_t)j;
		image[j] = (uint16_t)i;
		j = set_next(b, j + 1);
	}
	set_add_all(&moved, b);
	return is_symmetry(p, left, same, image, &moved);
}
