/* SPDX-License-Identifier: GPL-2.0-only */
/* Small numbers for objects, the lowest free one first, as the kernel's idr and bitmaps assign
 * them. The caller locks. */
#ifndef SIM_IDS_H
#define SIM_IDS_H

#include "sim_env.h"

struct sim_ids {
	void **slots;
	u32 capacity;
	u32 hint; /* no free slot below it */
	u32 base; /* number of slot 0 */
};

void sim_ids_init(struct sim_ids *ids, u32 base);
void sim_ids_done(struct sim_ids *ids);
/* -ENOSPC: the number would reach @end; -ENOMEM. */
int sim_ids_add(struct sim_ids *ids, void *object, u32 end, u32 *ret_id);
/* -EBUSY: the number is taken; -EINVAL: it is below the base; -ENOMEM. */
int sim_ids_add_at(struct sim_ids *ids, void *object, u32 id);
void *sim_ids_get(const struct sim_ids *ids, u32 id);
void *sim_ids_remove(struct sim_ids *ids, u32 id);
/* The object with the smallest number >= *@id, which becomes that number, or NULL after the last.
 */
void *sim_ids_next(const struct sim_ids *ids, u32 *id);
/* The same for the largest number <= *@id. */
void *sim_ids_previous(const struct sim_ids *ids, u32 *id);
u32 sim_ids_count(const struct sim_ids *ids);

#endif
