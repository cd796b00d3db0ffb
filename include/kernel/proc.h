/* SPDX-License-Identifier: GPL-2.0-only */
/* What /proc says of other tasks. */
#ifndef AMDGPU_PLUGIN_KERNEL_PROC_H
#define AMDGPU_PLUGIN_KERNEL_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pid_list;

/* The pid, here, of the process that this thread traces and that knows
 * itself as @vpid. -ESRCH. */
int proc_find_tracee(pid_t vpid, pid_t *ret_pid);
/* The pid of process @pid as it sees itself. -ESRCH. */
int proc_vpid(pid_t pid, pid_t *ret_own_pid);

/* The processes that this thread traces. The list is the caller's. */
int proc_list_tracees(struct pid_list *ret_list);
/* The topmost process above tracee @pid, or itself, up to which this thread traces all: CRIU traces
 * the tree that it dumps, and what else is in a cgroup that it freezes. This process, if it has
 * forked the tree. */
int proc_find_root(pid_t pid, pid_t *ret_root);
/* The processes that have the shared mapping of this one that begins at @memory and has @size
 * bytes, whole pages: those forked since it was made, whoever is their parent, and this one. The
 * list is the caller's. */
int proc_list_sharers(const void *memory, size_t size, struct pid_list *ret_list);
/* The parent of process @pid; 0: it has none here. -ESRCH. */
int proc_parent(pid_t pid, pid_t *ret_parent);
/* Process @top, its children, theirs and so on. The list is the caller's. */
int proc_list_tree(pid_t top, struct pid_list *ret_list);
/* Whether anybody traces process @pid. */
bool proc_is_traced(pid_t pid);

struct proc_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	/* Number of the device that is mapped. */
	dev_t device;
};

/* The mappings that process @pid has of character devices, by address. The
 * array is the caller's. */
int proc_list_mappings(pid_t pid, struct proc_mapping **ret_mappings, size_t *ret_count);

/* Render minor of a path like /dev/dri/renderD128, 0 for one like /dev/kfd, -ENOENT for others. */
int proc_device_of_path(const char *path);

#endif
