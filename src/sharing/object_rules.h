/* SPDX-License-Identifier: GPL-2.0-only */
/* Which BOs of a dump are one object, and which of them makes it at a restore. The functions set
 * the fields of struct shared_bo from `owner_name` on. */
#ifndef AMDGPU_PLUGIN_SHARING_OBJECT_RULES_H
#define AMDGPU_PLUGIN_SHARING_OBJECT_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "sharing/dmabufs.h"
#include "sharing/shared_bos.h"

/* A GEM handle in a render file of a process. */
struct shared_handle {
	struct bo_name name;
	/* Index in dump_session.processes. */
	size_t process;
};

struct shared_bos {
	/* By process and index. */
	struct shared_bo *list;
	size_t count;
	uint32_t num_objects;
	/* Descriptors of tasks, and those that CRIU had before CHECKPOINT. */
	struct dmabuf_files files;
	struct dmabuf_files own_files;
	/* The handles of all processes. object_rules_apply() sorts them by what they name. */
	struct shared_handle *handles;
	size_t num_handles;
	/* The BOs that are shared and can be restored, by each of their names. A job may have
	 * thousands of handles and of dma-bufs, and each asks for its BO while the queues stand
	 * still. */
	struct named_object *objects;
	size_t num_named;
};

/* For qsort() and bsearch(): by process and index. */
int object_rules_compare(const void *a, const void *b);

/* The list has the BOs of all processes, so a holder of a dma-buf that is not in the list is
 * outside. */
void object_rules_apply(struct shared_bos *shared);
/* When all problems are known: lists the BOs that have an object and no problem. -ENOMEM. */
int object_rules_name_objects(struct shared_bos *shared);
/* The first of them, by process and index, that has this name, or NULL. */
const struct shared_bo *object_rules_find(const struct shared_bos *shared,
					  const struct bo_name *name);

#endif
