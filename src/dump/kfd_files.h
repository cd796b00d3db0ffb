/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of /dev/kfd that tasks of a dump have open, before CRIU comes to show
 * them one by one. */
#ifndef AMDGPU_PLUGIN_DUMP_KFD_FILES_H
#define AMDGPU_PLUGIN_DUMP_KFD_FILES_H

#include <stddef.h>
#include <sys/types.h>

struct pid_list;
struct topology;

/* One descriptor, of our own, for each open file; in the order of pids and of their descriptors. */
struct tree_files {
	struct tree_file {
		int fd;
		/* A process that has it. */
		pid_t pid;
		/* The lowest pid, as they see themselves, of all in the tree that have it: there
		 * CRIU is going to open it again. */
		pid_t reopen_vpid;
		/* The topmost process of its tree; 0: there is but one tree. */
		pid_t root;
	} * list;
	size_t count;
};

/* The files of /dev/kfd of all @tasks. If there are none, of those that this thread traces in the
 * tree that has the file @shown, which is that of one of them; if none has it, of all that this
 * thread traces: so also of who is frozen with the dumped tree and stands above it. Descriptors are
 * numbered from @lowest_fd. -ENOSYS, -EPERM: the kernel does not hand out descriptors of tracees,
 * or does not tell files apart. */
int kfd_files_find(const struct pid_list *tasks, int shown, int lowest_fd,
		   struct tree_files *ret_files);
void kfd_files_done(struct tree_files *files);

/* The first of @tasks (none: of the processes that this thread traces) that maps memory of KFD or
 * of an AMD GPU without an open /dev/kfd, so that CRIU never shows a file of it. *@ret_pid is 0 if
 * there is none. */
int kfd_files_find_mapper(const struct pid_list *tasks, const struct topology *topology,
			  pid_t *ret_pid);

/* Whether two descriptors are of one open file: 1, 0 or -errno. */
int kfd_files_same(int one, int other);
/* Whether process @pid has the open file of descriptor @fd: 1, 0 or -errno. */
int kfd_files_has(pid_t pid, int fd);

#endif
