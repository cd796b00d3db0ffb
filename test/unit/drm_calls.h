/* SPDX-License-Identifier: GPL-2.0-only */
/* Some of the plugin's calls of libdrm_amdgpu, on the way to the real library and the simulated
 * GPUs: a test changes what the library says of the GPU, and counts. The program is linked with the
 * simulator, which has the machine "eight". test/faults makes each call fail. */
#ifndef TEST_UNIT_DRM_CALLS_H
#define TEST_UNIT_DRM_CALLS_H

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <xf86drm.h>

#include "amdgpu_sim.h"
#include "host.h"

#define FIRST_MINOR    128
#define RINGS          4
#define COPY_PACKET    1u
#define PACKET_DWORDS  7
#define HUGE_PAGE_SIZE (2u << 20)
#define MAPS           64

extern struct drm_calls {
	/* The engine's version that the library says. 0: what the simulated GPU says. An engine
	 * before version 4 takes a byte count as it is. */
	uint32_t sdma_version;
	/* The available rings, one bit each. The first two are the rings of the simulated GPU. */
	uint32_t rings;
	/* More flags of the context, as after a reset. */
	uint32_t context_flags;
	/* The library returns the handle of another GPU. */
	bool is_another;
	/* A copy ends before it is polled. */
	bool ends_before_poll;
	/* Another thread polls the first copy of a ring before the submitting call returns, and the
	 * copy ends only after that. */
	bool polls_before_return;
	/* Count the copies, and those whose source and target have other places in a page. */
	bool counts_copies;
	atomic_uint copies;
	atomic_uint unaligned_copies;
	/* GPU addresses of large BOs that are not at multiples of 2 MiB. */
	atomic_uint small_page_addresses;
	/* With what the library fails to open a GPU, and how often the plugin opens one. */
	int open_errno;
	atomic_uint opens;
	/* BOs that are there, and the most at once. */
	atomic_int bos, most_bos;
	atomic_uint submissions;
	atomic_uint polls;
	atomic_int in_list;
	atomic_uint ring_submissions[RINGS];
	atomic_uint violations;
	/* Bytes of all of it, and the place of the last. */
	atomic_ullong user_memory;
	atomic_uintptr_t last_user_memory;
	atomic_size_t last_user_memory_size;
	atomic_ullong timeout_ns;
	atomic_bool time_is_absolute;
	/* Where BOs are on the GPU, if an engine is to take other counts. */
	struct gpu_map {
		amdgpu_bo_handle bo;
		uint64_t va;
		uint64_t size;
		/* The CPU mapping, or NULL. */
		void *memory;
	} maps[MAPS];
	/* Of the test, which allocates BOs; 0: closed. */
	int render_fds[8];
	int another_fd;
} gpu;

/* The simulator stands in for syscall(), too, and reads all six arguments. */
#define system_call(...) syscall(__VA_ARGS__, 0L, 0L, 0L, 0L, 0L)

/* Whether @fd is the file @inode, for calls that a test observes of the image only: the simulated
 * GPUs call the same functions for their memory. */
bool is_inode(int fd, ino_t inode);
void sim_write(const char *file, const char *text);
int drm_calls_begin(void **state);
int drm_calls_end(void **state);
/* A BO of a GPU, in memory that the processor sees. The driver rounds the size up to pages. */
int new_dmabuf(uint32_t number, uint64_t size);

#endif
