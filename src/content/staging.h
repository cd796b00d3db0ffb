/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of this process for the copy engine: private and anonymous, because the kernel refuses
 * other memory for amdgpu_create_bo_from_user_mem(). It is aligned for huge pages, and a forked
 * child does not have it: after a fork() that copies a page, the GPU would write to the copy of the
 * child. */
#ifndef AMDGPU_PLUGIN_CONTENT_STAGING_H
#define AMDGPU_PLUGIN_CONTENT_STAGING_H

#include <stddef.h>
#include <stdint.h>

/* The next size that consists of whole pages of the kernel, or of huge pages, so that the last
 * bytes are in a huge page, too. amdgpu_gem_userptr_ioctl() refuses parts of the kernel's pages,
 * which have 64 KiB on some machines. */
size_t staging_round_up(size_t size);
/* The same for a part of it: whole pages of the kernel. */
size_t staging_round_up_slot(size_t size);
/* Bytes for the slots of a GPU whose user has not chosen them. They grow with the memory that is
 * free in this process's cgroup. */
uint64_t staging_choose(void);
/* NULL: there is no memory. munmap() gives it back. @size is a result of staging_round_up(). */
char *staging_map(size_t size);

#endif
