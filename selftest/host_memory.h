/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of a program that a GPU can use as user memory, of each kind that a checkpoint handles
 * differently. */
#ifndef SELFTEST_HOST_MEMORY_H
#define SELFTEST_HOST_MEMORY_H

#include <stddef.h>

/* Maps at least @size_bytes, and says in *@size_bytes how much. @kind: "private" or "shared"
 * anonymous memory, a "memfd", a memfd with "huge" pages, a "named" file in /run, an "unlinked"
 * file in /dev/shm, or a "segment" of System V. -EINVAL: no such kind. Free it with munmap(). */
int host_memory_map(const char *kind, size_t *size_bytes, void **ret_address);

#endif
