/* SPDX-License-Identifier: GPL-2.0-only */
/* The dma-bufs of a dump: which BOs those that tasks have open are, and what holds one.
 *
 * From Linux 6.8 on, a BO has one dma-buf, and the inode identifies it. Older kernels make a
 * dma-buf at each CHECKPOINT (criu_get_prime_handle() in kfd_chardev.c, Linux 6.1). There the
 * plugin imports the dma-buf into a render file of its own: a file of the BO's PCI device gets the
 * object itself (amdgpu_gem_prime_import() in amdgpu_dma_buf.c), and with it the mmap offset that
 * CHECKPOINT reports. A file of another device gets a new object, whose offset no BO has.
 *
 * The fdinfo of a dma-buf counts the references of all processes, so the dump can find out that a
 * process outside the dump shares a BO. sum_up() in dmabufs.c has what holds a dma-buf. */
#ifndef AMDGPU_PLUGIN_SHARING_DMABUFS_H
#define AMDGPU_PLUGIN_SHARING_DMABUFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sharing/shared_bos.h"

/* The files without a type that tasks have open, for each descriptor. Dma-bufs are among them. */
struct dmabuf_files {
	struct dmabuf_file {
		uint64_t device;
		uint64_t inode;
		/* A process that has the file open, and the descriptor in it. */
		pid_t pid;
		int number;
		/* dmabufs_find_bos(): the file is a dma-buf of an AMD GPU. */
		bool is_dmabuf;
		/* The BO has another inode, and this offset on its PCI device. */
		bool has_bo;
		struct bo_name bo;
	} * list;
	size_t count;
};

/* Lists them for all @tasks. */
int dmabufs_list(const struct pid_list *tasks, struct dmabuf_files *ret_files);
/* Lists those of this process. CRIU takes copies of a task's descriptors before it shows the first
 * of them (parasite_drain_fds_seized() in files.c). */
int dmabufs_list_own(struct dmabuf_files *ret_files);
void dmabufs_done(struct dmabuf_files *files);
/* How many of the descriptors are the file @inode of file system @device. *@ret_first: the index of
 * the first of them. */
uint32_t dmabufs_count(const struct dmabuf_files *files, uint64_t device, uint64_t inode,
		       size_t *ret_first);

/* Notes in shared->list which BOs a task has a dma-buf of, and in shared->files the BO of each
 * dma-buf. Logs only a dma-buf whose offset the kernel does not report. */
int dmabufs_find_bos(struct shared_bos *shared, const struct topology *topology);
/* What names the BO of which the file @stat is a dma-buf: its offset if that is known, or the inode
 * of the file. */
struct bo_name dmabufs_name(const struct dmabuf_files *files, const struct stat *stat);

struct dmabuf_holders {
	/* All of them, or 0 if the kernel does not report the number. */
	uint64_t references;
	/* BOs with their share handles, and descriptors, that the dump knows. */
	uint64_t bos;
	uint64_t descriptors;
	/* Objects of imports on other PCI devices than the owner's. A device has one for all
	 * imports of a dma-buf, but one for each import by a share handle. */
	uint64_t other_offsets;
	/* At most so many GPUs map a BO through PCIe. */
	uint64_t attachments;
	/* References of render files with a GEM handle of the object (virtual memory API). */
	uint64_t files;
};

/* All references to the dma-buf @fd, by its fdinfo in the directory @fdinfo of this process, or 0
 * if the kernel does not report them. -errno: fdinfo cannot be read. */
int dmabufs_count_references(int fdinfo, int fd, uint64_t *ret_count);
/* Whether holders that the dump knows can explain the number of references. If the
 * object and KFD's file no longer hold it, two strangers may be mistaken for them. */
bool dmabufs_are_known(const struct dmabuf_holders *holders);
/* Whether the number has all holders in it: up to Linux 6.2 imports do not count. */
bool dmabufs_are_counted(const struct dmabuf_holders *holders);

#endif
