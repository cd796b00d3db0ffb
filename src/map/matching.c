// SPDX-License-Identifier: GPL-2.0-only
/* Bipartite matching: by augmenting paths where any assignment will do, by the Hungarian method
 * where the cheapest is wanted. Knows sets, not GPUs. */
#include "map/matching.h"

#include <string.h>

#define NOT_REACHED INT32_MAX
#define NO_COLUMN   UINT16_MAX

struct choice {
	const struct gpu_set *sets;
	/* 1 + the set that an element represents; 0: none. */
	uint16_t owner[GPU_SET_MAX];
	struct gpu_set taken;
};

/* Finds an element for set @index, moving others to other elements where that makes room. */
static bool choose(struct choice *choice, size_t index, struct gpu_set *visited)
{
	struct gpu_set left = set_without(&choice->sets[index], visited);
	struct gpu_set vacant = set_without(&left, &choice->taken);
	size_t element = set_next(&vacant, 0);

	if (element < GPU_SET_MAX) {
		choice->owner[element] = (uint16_t)(index + 1);
		set_add(&choice->taken, element);
		return true;
	}
	set_for_each (i, &left) {
		if (set_has(visited, i))
			continue;
		set_add(visited, i);
		if (choose(choice, choice->owner[i] - 1u, visited)) {
			choice->owner[i] = (uint16_t)(index + 1);
			return true;
		}
	}
	return false;
}

bool matching_exists(const struct gpu_set *sets, size_t count)
{
	struct choice choice = { .sets = sets };

	for (size_t i = 0; i < count; i++) {
		struct gpu_set visited = { 0 };

		if (!choose(&choice, i, &visited))
			return false;
	}
	return true;
}

/* A path from a row without column over columns that others would have to give up. */
struct path {
	/* By column: what it would cost more to get there, and the column before it. */
	int32_t slack[GPU_SET_MAX];
	uint16_t before[GPU_SET_MAX];
	struct gpu_set reached;
};

static void look_from(const struct matching *matching, struct path *path, size_t row,
		      uint16_t column, const struct gpu_set *allowed, const struct costs *costs)
{
	struct gpu_set ahead = set_without(&allowed[row], &path->reached);

	set_for_each (i, &ahead) {
		int32_t slack =
			costs->of[row][i] - matching->row_price[row] - matching->column_price[i];

		if (slack < path->slack[i]) {
			path->slack[i] = slack;
			path->before[i] = column;
		}
	}
}

/* The nearest column not reached yet; where there is a choice one that nobody has. */
static size_t nearest_column(const struct matching *matching, const struct path *path)
{
	size_t nearest = GPU_SET_MAX;

	for (size_t i = 0; i < matching->size; i++) {
		if (set_has(&path->reached, i) || path->slack[i] == NOT_REACHED)
			continue;
		if (nearest == GPU_SET_MAX || path->slack[i] < path->slack[nearest] ||
		    (path->slack[i] == path->slack[nearest] && matching->row_of[nearest] &&
		     !matching->row_of[i]))
			nearest = i;
	}
	return nearest;
}

/* Moves prices so that the column at distance @delta is reached at no extra cost. */
static void move_prices(struct matching *matching, struct path *path, size_t first_row,
			int32_t delta)
{
	matching->row_price[first_row] += delta;
	for (size_t i = 0; i < matching->size; i++) {
		if (set_has(&path->reached, i)) {
			matching->row_price[matching->row_of[i] - 1u] += delta;
			matching->column_price[i] -= delta;
		} else if (path->slack[i] != NOT_REACHED) {
			path->slack[i] -= delta;
		}
	}
}

static bool add_row(struct matching *matching, size_t first_row, const struct gpu_set *allowed,
		    const struct costs *costs)
{
	uint16_t column = NO_COLUMN;
	size_t row = first_row;
	struct path path;

	path.reached = (struct gpu_set){ 0 };
	for (size_t i = 0; i < matching->size; i++)
		path.slack[i] = NOT_REACHED;
	for (;;) {
		size_t next;

		look_from(matching, &path, row, column, allowed, costs);
		next = nearest_column(matching, &path);
		if (next == GPU_SET_MAX)
			return false;
		move_prices(matching, &path, first_row, path.slack[next]);
		set_add(&path.reached, next);
		column = (uint16_t)next;
		if (!matching->row_of[column])
			break;
		row = matching->row_of[column] - 1u;
	}
	while (path.before[column] != NO_COLUMN) {
		matching->row_of[column] = matching->row_of[path.before[column]];
		matching->column_of[matching->row_of[column] - 1u] = (uint16_t)(column + 1);
		column = path.before[column];
	}
	matching->row_of[column] = (uint16_t)(first_row + 1);
	matching->column_of[first_row] = (uint16_t)(column + 1);
	return true;
}

bool matching_update(struct matching *matching, const struct gpu_set *allowed,
		     const struct costs *costs)
{
	for (size_t row = 0; row < matching->size; row++) {
		uint16_t column = matching->column_of[row];

		if (!column || set_has(&allowed[row], column - 1u))
			continue;
		matching->row_of[column - 1u] = 0;
		matching->column_of[row] = 0;
	}
	for (size_t row = 0; row < matching->size; row++) {
		if (!matching->column_of[row] && !add_row(matching, row, allowed, costs))
			return false;
	}
	return true;
}
