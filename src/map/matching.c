// SPDX-License-Identifier: GPL-2.0-only
/* Bipartite matching: by augmenting paths for any assignment, by the Hungarian method for the
 * cheapest. */
#include "map/matching.h"

#include <string.h>

#define NOT_REACHED INT32_MAX
#define NO_COLUMN   UINT16_MAX

struct assignment {
	const uint64_t *sets;
	/* By element: 1 + the set to which it is assigned, or 0. */
	uint16_t owner[GPU_SET_MAX];
	uint64_t taken;
};

/* Finds an element for set @index. If all its elements are taken, moves another set to another
 * element. */
static bool assign(struct assignment *assignment, size_t index, uint64_t *visited)
{
	uint64_t elements = assignment->sets[index] & ~*visited;
	uint64_t vacant = elements & ~assignment->taken;
	size_t element = set_next(vacant, 0);

	if (element < GPU_SET_MAX) {
		assignment->owner[element] = (uint16_t)(index + 1);
		assignment->taken |= set_of(element);
		return true;
	}
	set_for_each (i, elements) {
		if (set_has(*visited, i))
			continue;
		*visited |= set_of(i);
		if (assign(assignment, assignment->owner[i] - 1u, visited)) {
			assignment->owner[i] = (uint16_t)(index + 1);
			return true;
		}
	}
	return false;
}

bool matching_exists(const uint64_t *sets, size_t count)
{
	struct assignment assignment = { .sets = sets };

	for (size_t i = 0; i < count; i++) {
		uint64_t visited = 0;

		if (!assign(&assignment, i, &visited))
			return false;
	}
	return true;
}

/* The search for a path from a row without column to a free column, over columns that other rows
 * would give up. */
struct path {
	/* By column: the extra cost of reaching it, and the column before it. */
	int32_t slack[GPU_SET_MAX];
	uint16_t before[GPU_SET_MAX];
	uint64_t reached;
	/* The column that the path has reached last, or NO_COLUMN. */
	uint16_t end;
};

static void relax_columns(const struct matching *matching, struct path *path, size_t row,
			  const uint64_t *allowed, const struct costs *costs)
{
	uint64_t unreached = allowed[row] & ~path->reached;

	set_for_each (i, unreached) {
		int32_t slack =
			costs->of[row][i] - matching->row_price[row] - matching->column_price[i];

		if (slack < path->slack[i]) {
			path->slack[i] = slack;
			path->before[i] = path->end;
		}
	}
}

/* The nearest column that the path has not reached, or GPU_SET_MAX; of equals, a free one. */
static size_t nearest_column(const struct matching *matching, const struct path *path)
{
	size_t nearest = GPU_SET_MAX;

	for (size_t i = 0; i < matching->size; i++) {
		if (set_has(path->reached, i) || path->slack[i] == NOT_REACHED)
			continue;
		if (nearest == GPU_SET_MAX || path->slack[i] < path->slack[nearest] ||
		    (path->slack[i] == path->slack[nearest] && matching->row_of[nearest] &&
		     !matching->row_of[i]))
			nearest = i;
	}
	return nearest;
}

/* Adjusts prices so that the column at distance @delta costs nothing extra. */
static void adjust_prices(struct matching *matching, struct path *path, size_t first_row,
			  int32_t delta)
{
	matching->row_price[first_row] += delta;
	for (size_t i = 0; i < matching->size; i++) {
		if (set_has(path->reached, i)) {
			matching->row_price[matching->row_of[i] - 1u] += delta;
			matching->column_price[i] -= delta;
		} else if (path->slack[i] != NOT_REACHED) {
			path->slack[i] -= delta;
		}
	}
}

/* Finds the cheapest path from @first_row to a free column. */
static bool find_path(struct matching *matching, size_t first_row, const uint64_t *allowed,
		      const struct costs *costs, struct path *path)
{
	size_t row = first_row;

	path->reached = 0;
	path->end = NO_COLUMN;
	for (size_t i = 0; i < matching->size; i++)
		path->slack[i] = NOT_REACHED;
	for (;;) {
		size_t next;

		relax_columns(matching, path, row, allowed, costs);
		next = nearest_column(matching, path);
		if (next == GPU_SET_MAX)
			return false;
		adjust_prices(matching, path, first_row, path->slack[next]);
		path->reached |= set_of(next);
		path->end = (uint16_t)next;
		if (!matching->row_of[next])
			return true;
		row = matching->row_of[next] - 1u;
	}
}

static bool add_row(struct matching *matching, size_t first_row, const uint64_t *allowed,
		    const struct costs *costs)
{
	struct path path;
	uint16_t column;

	if (!find_path(matching, first_row, allowed, costs, &path))
		return false;
	column = path.end;
	while (path.before[column] != NO_COLUMN) {
		matching->row_of[column] = matching->row_of[path.before[column]];
		matching->column_of[matching->row_of[column] - 1u] = (uint16_t)(column + 1);
		column = path.before[column];
	}
	matching->row_of[column] = (uint16_t)(first_row + 1);
	matching->column_of[first_row] = (uint16_t)(column + 1);
	return true;
}

bool matching_update(struct matching *matching, const uint64_t *allowed, const struct costs *costs)
{
	for (size_t row = 0; row < matching->size; row++) {
		uint16_t column = matching->column_of[row];

		if (!column || set_has(allowed[row], column - 1u))
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
