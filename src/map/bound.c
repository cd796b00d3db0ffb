// SPDX-License-Identifier: GPL-2.0-only
/* How many GPUs can stay the very same ones at best, as far as whole blocks of GPUs tell. The
 * search leaves alone what cannot be better than what it has. */
#include "map/bound.h"

/* How many GPUs of a saved block can stay the very same ones in each local block,
 * and in the best. */
static int count_kept(const struct blocking *blocking, const struct gpu_set *kept_if, size_t block,
		      uint16_t *kept)
{
	int most = 0;

	for (size_t i = 0; i < blocking->local.count; i++)
		kept[i] = 0;
	set_for_each (i, &blocking->saved.members[block]) {
		struct gpu_set counted = { 0 };

		set_for_each (j, &kept_if[i]) {
			int to = blocking->local.of[j];

			if (to == NO_BLOCK || set_has(&counted, (size_t)to))
				continue;
			set_add(&counted, (size_t)to);
			if (++kept[to] > most)
				most = kept[to];
		}
	}
	return most;
}

/* Blocks that stay apart take local blocks from each other. */
static int bound_apart(struct bound_room *room, const struct blocking *blocking)
{
	struct gpu_set all = set_of_first(blocking->local.count), allowed[GPU_SET_MAX];
	struct matching matching = { .size = blocking->local.count };
	int kept = 0;

	for (size_t i = 0; i < blocking->local.count; i++) {
		allowed[i] = all;
		for (size_t j = 0; j < blocking->local.count; j++)
			room->costs.of[i][j] =
				i < blocking->saved.count ? GPU_SET_MAX - room->kept[i][j] : 0;
	}
	(void)matching_update(&matching, allowed, &room->costs);
	for (size_t i = 0; i < blocking->saved.count; i++)
		kept += room->kept[i][matching.column_of[i] - 1u];
	return kept;
}

int prune_bound(struct bound_room *room, const struct blocking *blocking,
		const struct gpu_set *wanted, const struct gpu_set *kept_if)
{
	int free_gpus = 0, kept = 0;

	set_for_each (i, wanted)
		free_gpus += blocking->saved.of[i] == NO_BLOCK && !set_is_empty(&kept_if[i]);
	for (size_t i = 0; i < blocking->saved.count; i++)
		kept += count_kept(blocking, kept_if, i, room->kept[i]);
	if (kept && blocking->apart && blocking->saved.count <= blocking->local.count) {
		int apart = bound_apart(room, blocking);

		kept = apart < kept ? apart : kept;
	}
	return free_gpus + kept;
}
