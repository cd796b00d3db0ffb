/* SPDX-License-Identifier: GPL-2.0-only */
/* What /proc and sysfs say of a KFD process, which its /dev/kfd does not report. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_KFD_PROCESS_H
#define AMDGPU_PLUGIN_PREFLIGHT_KFD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct topology;

/* How many GPUs the process has given KFD a VM of. */
struct kfd_vms {
	/* By the PASID of the process, if sysfs tells it: a file by which the process has
	 * given a VM has that PASID. */
	size_t certain;
	/* If no file has that PASID, the same number as where sysfs does not tell. */
	size_t likely;
};

/* Counts the AMD render nodes that process @pid has open or maps. A process gives KFD the VM of a
 * GPU by a file of the render node. Up to Linux 6.12 at least, the kernel tells the PASID of the
 * process. On newer kernels a render node that the process has opened for graphics counts, too.
 * -errno: /proc cannot be read. */
int kfd_process_count_vms(pid_t pid, const struct topology *topology, struct kfd_vms *ret_vms);

/* The directory of a KFD process below PROC_KFD has a file vram_ID for each GPU that the process
 * sees, with the VRAM of its BOs in bytes (kfd_procfs_add_sysfs_files() in the kernel's
 * kfd_process.c). */
#define KFD_PROCESS_VRAM "vram_"

/* Calls @take for each entry of that directory, or of directory @below in it, until @take fails.
 * -ENOENT: sysfs does not know process @pid, there is no such directory, or this process is not in
 * the initial pid namespace, whose pids name the directories. */
int kfd_process_walk(pid_t pid, const char *below,
		     int (*take)(int directory, const char *name, void *argument), void *argument);

/* What sysfs says of a process. */
struct kfd_sysfs {
	/* The GPUs that KFD lets it see. */
	size_t num_gpus;
	/* It has VRAM, so it has BOs. */
	bool has_vram;
	/* It has more than one KFD process, which Linux 7 makes for a file of /dev/kfd on request
	 * (CREATE_PROCESS). */
	bool has_contexts;
};

/* -ENOENT: sysfs does not know process @pid, because it has inherited its /dev/kfd, or this process
 * is not in the initial pid namespace. */
int kfd_process_read_sysfs(pid_t pid, struct kfd_sysfs *ret_sysfs);

/* Whether descriptor @number of process @pid is such a file, of a render node. Where sysfs does not
 * tell the PASID of the process, it may be, and the answer is true. */
bool kfd_process_has_vm_in(pid_t pid, int number);

/* Whether process @pid was started with the environment variable @name, and its value is neither
 * empty nor 0: 1, 0 or -errno. A variable that the process has set itself is not seen. */
int kfd_process_was_started_with(pid_t pid, const char *name);

#endif
