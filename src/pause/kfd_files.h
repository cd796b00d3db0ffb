/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the /dev/kfd files of all tasks of a dump, before CRIU shows them one by one, and their
 * GPUs. */
#ifndef AMDGPU_PLUGIN_PAUSE_KFD_FILES_H
#define AMDGPU_PLUGIN_PAUSE_KFD_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "criu/host.h"

struct dump_session;
struct dumped_file;
struct pid_list;
struct topology;

/* The highest descriptor that the dump needs besides dma-bufs. */
#define KFD_FILES_HIGHEST_FD (HOST_LOWEST_FD + 1024)

/* Lists the /dev/kfd files of all tasks, which CRIU has stopped. If CRIU has not named the tasks,
 * lists the tasks, too: those of the tree that has the file @shown (borrowed). Later calls do
 * nothing. -errno, logged, also if the kernel does not hand out files of other
 * processes. */
int kfd_files_list(struct dump_session *session, int shown);
/* For a CRIU that does not name its tasks: adds the tasks that this thread traces in the tree that
 * has the file @shown. CRIU also freezes the other processes of a cgroup. If no task has the file:
 * all tasks that this thread traces. */
int kfd_files_list_tree(int shown, struct pid_list *ret_tasks);
/* Lists the /dev/kfd files of all tasks of the session in session->files, in the order of pids and
 * of their descriptors there. Those of the plugin are numbered from @lowest_fd. pause_close_files()
 * closes them, after an error, too. -ENOSYS, -EPERM: the kernel does not hand out descriptors of
 * tracees (pidfd_getfd), or does not compare files (kcmp). */
int kfd_files_find(struct dump_session *session, int lowest_fd);
/* *@ret_file: the listed file that @fd is a descriptor of, or NULL if it is not listed. */
int kfd_files_find_listed(const struct dump_session *session, int fd,
			  struct dumped_file **ret_file);

/* Refuses the dump if one of its tasks maps memory of KFD or of an AMD GPU without an open
 * /dev/kfd, so that CRIU never shows a file of it. If CRIU has not named the tasks: one of the
 * processes that this thread traces. Logs on error. */
int kfd_files_check_mappers(const struct dump_session *session);

/* Sets the elements of @ret_open, one for each node, whose render node one of @tasks has open. */
int kfd_files_find_gpus(const struct pid_list *tasks, const struct topology *topology,
			bool *ret_open);

/* Whether descriptor @number of process @pid is the file @fd: 1, 0 or -errno. A descriptor that the
 * process has closed meanwhile is not. */
int kfd_files_compare(pid_t pid, int number, int fd);
/* Whether process @pid has the open file of descriptor @fd: 1, 0 or -errno. */
int kfd_files_has(pid_t pid, int fd);

#endif
