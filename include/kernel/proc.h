/* SPDX-License-Identifier: GPL-2.0-only */
/* Facts about other processes, from /proc. Lists belong to the caller. */
#ifndef AMDGPU_PLUGIN_KERNEL_PROC_H
#define AMDGPU_PLUGIN_KERNEL_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

struct pid_list;

/* The largest pid is below this (PID_MAX_LIMIT in the kernel's linux/threads.h). */
#define PROC_PIDS_MAX 4194304

/* Opens /proc/@pid/@name for reading. -ESRCH: the process has ended. */
int proc_open_file(pid_t pid, const char *name, FILE **ret_file);
/* The pid of the tracee of this thread that has @vpid. -ESRCH: there is none. */
int proc_find_tracee(pid_t vpid, pid_t *ret_pid);
/* The pid of process @pid in the process's own pid namespace. -ESRCH: there is no such process. */
int proc_vpid(pid_t pid, pid_t *ret_vpid);

/* What /proc says of a process, or of a thread. */
struct proc_status {
	/* 0 if it has none, or none in this pid namespace. */
	pid_t tracer, parent;
	/* Its pid in its own pid namespace. */
	pid_t vpid;
	/* Signals of the thread and of its process: bit n - 1 for signal n. */
	uint64_t pending, ignored, caught;
	/* The capabilities of the bounding set, a bit each. */
	uint64_t bounding;
	bool no_new_privs;
};

/* -ESRCH: there is no such process. */
int proc_read_status(pid_t pid, struct proc_status *ret_status);

/* The effective capabilities of this thread, a bit each. */
int proc_own_capabilities(uint64_t *ret_capabilities);

/* The inode of the pid namespace of this process, or 0 if /proc does not show it. */
ino_t proc_pid_namespace(void);

/* Whether pids of this process are those of the initial pid namespace. */
bool proc_in_initial_pid_namespace(void);

/* Whether this process is in another user namespace than the initial one. */
bool proc_in_user_namespace(void);

/* Whether no process of this pid namespace has @pid. */
bool proc_is_missing(pid_t pid);

/* The directory of the driver with a directory for each process that has a KFD process, by its pid
 * in the initial pid namespace (kfd_create_process_sysfs() in kfd_process.c). */
#define PROC_KFD "/sys/class/kfd/kfd/proc"

/* The processes that this thread traces. */
int proc_list_tracees(struct pid_list *ret_list);
/* The root of the tree of tracee @pid: its highest ancestor, or @pid itself, such that this thread
 * traces all processes between. CRIU traces the tree that it dumps, and the other processes of a
 * cgroup that it freezes. If this process has forked the tree, the root is this process. */
int proc_find_root(pid_t pid, pid_t *ret_root);
/* The processes that share the mapping of this process at @memory, of @size bytes (whole pages):
 * this process, and all that it or its descendants have forked since it created the mapping. */
int proc_list_sharers(const void *memory, size_t size, struct pid_list *ret_list);
/* Process @top and its descendants. */
int proc_list_tree(pid_t top, struct pid_list *ret_list);
/* Whether process @pid has a tracer. */
bool proc_is_traced(pid_t pid);

/* The signals that are pending for a process or for one of its threads, and that do something when
 * they are delivered: bit n - 1 for signal n. */
int proc_pending_signals(pid_t pid, uint64_t *ret_signals);

/* Opens the directory of the descriptors of a process. -ESRCH: the process has ended. */
int proc_open_fds(pid_t pid, DIR **ret_stream);
/* The number of the next descriptor in that directory. False: the end, or an error if *@ret_error
 * is not 0 but -errno. */
bool proc_next_fd(DIR *stream, int *ret_number, int *ret_error);
/* Examines descriptor @number of the process without opening its device, which could have effects:
 * 1, 0, or -errno if this process lacks descriptors or memory. 0: the process has closed the
 * descriptor meanwhile, or the file is on a file system that forbids it, so it is no device. */
int proc_stat_fd(pid_t pid, int number, struct stat *ret_stat);

/* A copy of descriptor @number of process @pid (pidfd_getfd(), Linux 5.6), which does not stop the
 * process. -EPERM: this process may not trace it; -EBADF: there is no such descriptor. */
int proc_get_fd(pid_t pid, int number, int *ret_fd);

struct proc_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	/* The number of the device. */
	dev_t device;
};

/* The mappings of character devices in process @pid, by address. The caller frees the array. */
int proc_list_mappings(pid_t pid, struct proc_mapping **ret_mappings, size_t *ret_count);

/* Addresses of a process, whole pages. */
struct proc_range {
	uint64_t start;
	uint64_t end;
};

/* Examines the file of the mapping with this range. -EPERM: only with CAP_CHECKPOINT_RESTORE may a
 * process follow the link to it (fs/proc/base.c in the kernel). -ENOENT: there is no mapping. */
int proc_stat_mapped(pid_t pid, struct proc_range mapping, struct stat *ret_stat);

/* Sorts @ranges by address, and finds the first part of them that is not mapped in process @pid:
 * returns 1, or 0 if all are mapped, or -errno. -ESRCH: no such process. */
int proc_find_unmapped(pid_t pid, struct proc_range *ranges, size_t count,
		       struct proc_range *ret_range);

/* The render minor of a path like /dev/dri/renderD128, 0 for one like /dev/kfd,
 * -ENOENT for others. */
int proc_device_of_path(const char *path);

/* Whether pages of process @pid are missing until a userfaultfd fills them: 1, 0 or -errno. With
 * `criu restore --lazy-pages` that is so for private anonymous memory. Reads smaps, so it takes
 * some seconds for each TiB of memory in small pages. -ESRCH: no such process. */
int proc_has_lazy_memory(pid_t pid);

#endif
