// SPDX-License-Identifier: GPL-2.0-only
/* Sorts the shared BOs of a dump by offset and by inode. A job may have thousands of handles and of
 * dma-bufs, and each asks for its BO while the queues stand still. */
#include "sharing/object_table.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "sharing/object_rules.h"
#include "sharing/shared_bos.h"

struct named_object {
	struct shared_handle name;
	const struct shared_bo *bo;
};

static int compare(const void *a, const void *b)
{
	const struct named_object *one = a, *other = b;

	return object_rules_compare_handles(&one->name, &other->name)
		       ?: object_rules_compare(one->bo, other->bo);
}

static void add(struct shared_bos *shared, const struct shared_bo *bo)
{
	struct named_object *names = &shared->objects[shared->num_named];

	names[0] = (struct named_object){ object_rules_name_offset(bo), bo };
	names[1] = (struct named_object){ object_rules_name_inode(bo), bo };
	shared->num_named += 2;
}

static size_t count_objects(const struct shared_bos *shared)
{
	size_t count = 0;

	for (size_t i = 0; i < shared->count; i++)
		count += shared->list[i].object && !shared->list[i].problem;
	return count;
}

int object_table_make(struct shared_bos *shared)
{
	shared->objects = calloc(2 * count_objects(shared) + 1, sizeof(*shared->objects));
	if (!shared->objects)
		return -ENOMEM;
	for (size_t i = 0; i < shared->count; i++) {
		if (shared->list[i].object && !shared->list[i].problem)
			add(shared, &shared->list[i]);
	}
	qsort(shared->objects, shared->num_named, sizeof(*shared->objects), compare);
	return 0;
}

void object_table_done(struct shared_bos *shared)
{
	free(shared->objects);
	shared->objects = NULL;
	shared->num_named = 0;
}

const struct shared_bo *object_table_find(const struct shared_bos *shared,
					  const struct shared_handle *handle)
{
	const struct named_object *at = shared->objects;
	/* An object begins with its name. */
	size_t first = lower_bound(handle, at, shared->num_named, sizeof(*at),
				   object_rules_compare_handles);

	return first < shared->num_named && !object_rules_compare_handles(&at[first].name, handle)
		       ? at[first].bo
		       : NULL;
}
