/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers the calls by which the plugin reaches /dev/kfd, render nodes and the topology from a
 * script. Tests of dumps and restores use it instead of the simulated device for answers that the
 * simulated device cannot give: BOs, queues and events of kinds that no driver makes, records of
 * other sizes, and one operation that fails with a chosen errno. It also counts the operations of
 * each process. It has no GPU; fake_gpu.h adds a copy engine.
 *
 * In programs that are linked with it, its functions replace open(), fstat(), ioctl(), kill(),
 * mmap() and readdir() of the C library. */
#ifndef TEST_UNIT_FAKE_KERNEL_H
#define TEST_UNIT_FAKE_KERNEL_H

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <drm.h>

#include "amdgpu_plugin_topology.h"
#include "fake_kfd.h"
#include "host.h"
#include "kernel/kfd.h"

struct fake_process *add_process(pid_t pid);
void forget_processes(void);
void add_device(struct fake_process *process, uint32_t user_id, uint32_t actual_id);
struct kfd_bo_bucket *add_bo(struct fake_process *process, uint32_t gpu_id, uint32_t flags,
			     uint64_t addr, uint64_t size, uint64_t offset);
int fake_kernel_begin(void **state);
/* From here on this process and its children share one kernel. */
void fake_kernel_share(void);
int fake_kernel_end(void **state);
/* The machine becomes a copy of machine @name. @edit is a command of sed for the properties of node
 * @node of it; "*": of all. */
void change_gpus(const char *name, const char *node, const char *edit);
/* Devices are files in the test's directory: kfd-INDEX of a process, renderD-MINOR, dmabuf-NUMBER
 * of an AMD GPU. They can be opened several times, like devices. */
int open_device(const char *name, int flags);
int open_kfd_of(const struct fake_process *process);
int open_render(uint32_t number, int flags);

#endif
