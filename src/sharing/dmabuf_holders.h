/* SPDX-License-Identifier: GPL-2.0-only */
/* The holders of a dma-buf of KFD. Its fdinfo counts the references of all processes, so the dump
 * can find out that a process outside the dump shares a BO. The table in dmabuf_holders.c has what
 * holds a dma-buf. */
#ifndef AMDGPU_PLUGIN_SHARING_DMABUF_HOLDERS_H
#define AMDGPU_PLUGIN_SHARING_DMABUF_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct pid_list;

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

/* The files without a type that tasks have open, for each descriptor. Dma-bufs are among them. */
struct dmabuf_files {
	struct dmabuf_file {
		uint64_t device;
		uint64_t inode;
		/* One that has it open, and its descriptor. */
		pid_t pid;
		int number;
		/* dmabuf_bos.c: the file is a dma-buf of an AMD GPU. */
		bool is_dmabuf;
		/* The BO has another inode, and this offset on its PCI device. */
		bool has_bo;
		uint64_t bo_device;
		uint64_t bo_offset;
	} * list;
	size_t count;
};

/* Lists the same files of this process. CRIU takes copies of a task's descriptors before it shows
 * the first of them (parasite_drain_fds_seized() in files.c). */
int dmabuf_holders_list_own(struct dmabuf_files *ret_files);
/* Lists them for all @tasks. */
int dmabuf_holders_list(const struct pid_list *tasks, struct dmabuf_files *ret_files);
void dmabuf_holders_done(struct dmabuf_files *files);
/* How many of the descriptors are the file @inode of file system @device. *@ret_first: the index of
 * the first of them. */
uint32_t dmabuf_holders_find(const struct dmabuf_files *files, uint64_t device, uint64_t inode,
			     size_t *ret_first);

/* Opens the directory with the fdinfo of this process. The queues stand still while the fdinfo of
 * each BO is read, so the kernel walks the path once. Returns the descriptor or -errno. */
int dmabuf_holders_open_fdinfo(void);
/* All references to the dma-buf @fd, by its fdinfo in the directory @fdinfo, or 0 if the kernel
 * does not report them. -errno: fdinfo cannot be read. */
int dmabuf_holders_count(int fdinfo, int fd, uint64_t *ret_count);
/* Whether holders that the dump knows can explain the number of references. If the
 * object and KFD's file no longer hold it, two strangers may be mistaken for them. */
bool dmabuf_holders_are_known(const struct dmabuf_holders *holders);
/* Whether the number has all holders in it: up to Linux 6.2 imports do not count. */
bool dmabuf_holders_are_counted(const struct dmabuf_holders *holders);

#endif
