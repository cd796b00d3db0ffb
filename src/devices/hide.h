/* SPDX-License-Identifier: GPL-2.0-only */
/* Hides GPUs from the calling task while it opens /dev/kfd. KFD decides then which GPUs a process
 * has: those whose render nodes the device cgroup allows (kfd_init_apertures() in
 * kfd_flat_memory.c). A runtime may set the device cgroup after the restore (crun with cgroupfs),
 * or CRIU may restore the files first. The task then adds a program of its own to its cgroup. */
#ifndef AMDGPU_PLUGIN_DEVICES_HIDE_H
#define AMDGPU_PLUGIN_DEVICES_HIDE_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* The name of a thread with its zero byte (TASK_COMM_LEN). */
#define HIDE_NAME_SIZE 16
/* The most minors, and the instructions for them. */
#define HIDE_MINORS_MAX       64
#define HIDE_INSTRUCTIONS_MAX (HIDE_MINORS_MAX + 33)

/* While GPUs are hidden. The kernel detaches the program if the task ends. */
struct hide {
	int link;
	char old_name[HIDE_NAME_SIZE];
};

/* Denies the calling thread, and no other, the render nodes with these minors. The thread has
 * another name meanwhile. Waits up to ten seconds while other programs fill the cgroup. On error
 * *@ret_cause says what cannot be done. Logs nothing. */
int hide_begin(const uint32_t *minors, size_t count, struct hide *ret_hide, const char **ret_cause);
void hide_end(struct hide *hide);

/* The same for all threads of the caller's cgroup that have this name. The name has 15 characters,
 * because Linux 6.1 leaves undefined what follows a shorter one. Returns a link, and the caller
 * closes it, which ends that. */
int hide_attach(const uint32_t *minors, size_t count, const char name[HIDE_NAME_SIZE],
		const char **ret_cause);

/* The program (BPF_PROG_TYPE_CGROUP_DEVICE): returns 0 if a thread named @name accesses one of the
 * render nodes, and otherwise 1, which allows the access. @ret_program has room for
 * HIDE_INSTRUCTIONS_MAX. Returns the number of instructions. */
size_t hide_build(const uint32_t *minors, size_t count, const char name[HIDE_NAME_SIZE],
		  struct bpf_insn *ret_program);

#endif
