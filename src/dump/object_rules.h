/* SPDX-License-Identifier: GPL-2.0-only */
/* Which BOs of a dump are one object, and which of them makes it at a restore. The functions set
 * the fields of struct shared_bo from `home_device` on. */
#ifndef AMDGPU_PLUGIN_DUMP_OBJECT_RULES_H
#define AMDGPU_PLUGIN_DUMP_OBJECT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump/dmabuf_holders.h"

struct shared_bo;

struct shared_bos {
	/* By process and index. */
	struct shared_bo *list;
	size_t count;
	/* The processes in the list are the first ones of the session. */
	size_t num_processes;
	/* Its dma-bufs are open throughout the scan. */
	size_t first_process;
	uint32_t num_objects;
	bool are_listed;
	/* Descriptors of tasks. */
	struct dmabuf_files files;
};

/* For qsort() and bsearch(): by process and index. */
int object_rules_compare(const void *a, const void *b);

/* The list has the BOs of all processes. @all_are_listed: no other process joins the dump, so a
 * holder of a dma-buf that is not in the list is outside. */
void object_rules_apply(struct shared_bos *shared, bool all_are_listed);
/* The last process has joined when images of others may be written already. Judges its BOs only. */
void object_rules_apply_late(struct shared_bos *shared);

#endif
