/* SPDX-License-Identifier: GPL-2.0-only */
/* Which BOs of a dump are one object, and which of them makes it at a restore. The functions set
 * the fields of struct shared_bo from `owner_device` on. */
#ifndef AMDGPU_PLUGIN_SHARING_OBJECT_RULES_H
#define AMDGPU_PLUGIN_SHARING_OBJECT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sharing/dmabuf_holders.h"

struct shared_bo;

/* A GEM handle in a render file of a process, by what it names (gem_list.h). */
struct shared_handle {
	/* Index in dump_session.processes. */
	size_t process;
	/* The object is of another PCI device, and @key is the inode of its dma-buf. Otherwise @key
	 * is its mmap offset on @device. */
	bool is_import;
	/* topology_pci_device() of the file's GPU; 0 for an import. */
	uint64_t device;
	uint64_t key;
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
	/* The BOs that are shared and can be restored, once for each kind of handle. See
	 * object_table.h. */
	struct named_object *objects;
	size_t num_named;
};

/* For qsort() and bsearch(): by process and index. */
int object_rules_compare(const void *a, const void *b);

/* The list has the BOs of all processes, so a holder of a dma-buf that is not in the list is
 * outside. */
void object_rules_apply(struct shared_bos *shared);
/* For qsort() and bsearch(): handles by what they name. */
int object_rules_compare_handles(const void *a, const void *b);
/* The two handles that name @bo, for object_rules_compare_handles(). */
struct shared_handle object_rules_name_offset(const struct shared_bo *bo);
struct shared_handle object_rules_name_inode(const struct shared_bo *bo);

#endif
