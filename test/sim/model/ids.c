// SPDX-License-Identifier: GPL-2.0-only
/* A growing array of pointers with a hint to the lowest free slot. The caller owns the objects. */
#include "ids.h"
#include "sim_os.h"

#define IDS_FIRST_CAPACITY 64u
#define IDS_MAX            (1u << 24)

void sim_ids_init(struct sim_ids *ids, u32 base)
{
	memset(ids, 0, sizeof(*ids));
	ids->base = base;
}

void sim_ids_done(struct sim_ids *ids)
{
	free(ids->slots);
	ids->slots = NULL;
	ids->capacity = 0;
}

static int grow(struct sim_ids *ids, u32 needed)
{
	u32 capacity = ids->capacity ? ids->capacity : IDS_FIRST_CAPACITY;
	void **slots;

	if (needed > IDS_MAX)
		return -ENOMEM;
	while (capacity < needed)
		capacity *= 2;
	slots = realloc(ids->slots, capacity * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots + ids->capacity, 0, (capacity - ids->capacity) * sizeof(*slots));
	ids->slots = slots;
	ids->capacity = capacity;
	return 0;
}

static int put(struct sim_ids *ids, void *object, u32 slot)
{
	int ret;

	if (slot >= ids->capacity) {
		ret = grow(ids, slot + 1);
		if (ret < 0)
			return ret;
	}
	ids->slots[slot] = object;
	return 0;
}

int sim_ids_add(struct sim_ids *ids, void *object, u32 end, u32 *ret_id)
{
	u32 slot = ids->hint;
	int ret;

	while (slot < ids->capacity && ids->slots[slot])
		slot++;
	if (slot >= end - ids->base)
		return -ENOSPC;
	ret = put(ids, object, slot);
	if (ret < 0)
		return ret;
	ids->hint = slot + 1;
	*ret_id = ids->base + slot;
	return 0;
}

int sim_ids_add_at(struct sim_ids *ids, void *object, u32 id)
{
	if (id < ids->base)
		return -EINVAL;
	if (sim_ids_get(ids, id))
		return -EBUSY;
	return put(ids, object, id - ids->base);
}

void *sim_ids_get(const struct sim_ids *ids, u32 id)
{
	u32 slot = id - ids->base;

	return id >= ids->base && slot < ids->capacity ? ids->slots[slot] : NULL;
}

void *sim_ids_remove(struct sim_ids *ids, u32 id)
{
	void *object = sim_ids_get(ids, id);

	if (!object)
		return NULL;
	ids->slots[id - ids->base] = NULL;
	ids->hint = min(ids->hint, id - ids->base);
	return object;
}

void *sim_ids_next(const struct sim_ids *ids, u32 *id)
{
	u32 slot = *id > ids->base ? *id - ids->base : 0;

	for (; slot < ids->capacity; slot++) {
		if (!ids->slots[slot])
			continue;
		*id = ids->base + slot;
		return ids->slots[slot];
	}
	return NULL;
}

void *sim_ids_previous(const struct sim_ids *ids, u32 *id)
{
	u32 end = *id < ids->base                   ? 0
		  : *id - ids->base < ids->capacity ? *id - ids->base + 1
						    : ids->capacity;

	while (end-- > 0) {
		if (!ids->slots[end])
			continue;
		*id = ids->base + end;
		return ids->slots[end];
	}
	return NULL;
}

u32 sim_ids_count(const struct sim_ids *ids)
{
	u32 count = 0, id = 0;

	for (; sim_ids_next(ids, &id); id++)
		count++;
	return count;
}
