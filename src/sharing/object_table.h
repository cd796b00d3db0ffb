/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the shared BOs of a dump by what names them: mmap offset or inode. */
#ifndef AMDGPU_PLUGIN_SHARING_OBJECT_TABLE_H
#define AMDGPU_PLUGIN_SHARING_OBJECT_TABLE_H

struct shared_bo;
struct shared_bos;
struct shared_handle;

/* After object_rules_apply(), when all problems are known: lists the BOs that have an object and no
 * problem. -ENOMEM. */
int object_table_make(struct shared_bos *shared);
void object_table_done(struct shared_bos *shared);
/* The first of them, by process and index, that @handle names, or NULL. */
const struct shared_bo *object_table_find(const struct shared_bos *shared,
					  const struct shared_handle *handle);

#endif
