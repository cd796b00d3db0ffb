/* SPDX-License-Identifier: GPL-2.0-only */
/* Which BOs the open dma-bufs of the tasks are. From Linux 6.8 on, a BO has one dma-buf, and the
 * inode identifies it. Older kernels make a dma-buf at each CHECKPOINT (criu_get_prime_handle() in
 * kfd_chardev.c, Linux 6.1). There the plugin imports the dma-buf into a render file of its own: a
 * file of the BO's PCI device gets the object itself (amdgpu_gem_prime_import() in
 * amdgpu_dma_buf.c), and with it the mmap offset that CHECKPOINT reports. A file of another device
 * gets a new object, whose offset no BO has. */
#ifndef AMDGPU_PLUGIN_SHARING_DMABUF_BOS_H
#define AMDGPU_PLUGIN_SHARING_DMABUF_BOS_H

#include <sys/stat.h>

struct shared_bo;
struct shared_bos;
struct topology;

/* Notes in shared->list which BOs a task has a dma-buf of, and in shared->files the BO of each
 * dma-buf. Logs only a dma-buf whose offset the kernel does not report. */
int dmabuf_bos_find(struct shared_bos *shared, const struct topology *topology);
/* After object_table_make(): a BO that is shared and of which the file @stat is a dma-buf, the
 * first of its object, or NULL. */
const struct shared_bo *dmabuf_bos_find_object(const struct shared_bos *shared,
					       const struct stat *stat);

#endif
