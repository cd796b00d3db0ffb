/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers for tests of the simulator: its files, fixtures that find violations and leaks, and a
 * process that is saved and restored. */
#ifndef TEST_NATIVE_SIM_TEST_H
#define TEST_NATIVE_SIM_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "amdgpu_sim.h"
#include "raw_kfd.h"
#include "tests.h"

static inline void sim_write(const char *file, const char *text)
{
	assert_int_equal(amdgpu_sim_write(file, text), 0);
}

/* Reads the first number in @file. */
static inline long sim_number(const char *file)
{
	char text[8192];

	assert_true(amdgpu_sim_read(file, text, sizeof(text)) >= 0);
	return strtol(text, NULL, 10);
}

static inline int begin(void **state)
{
	(void)state;
	sim_write("violations", "0");
	return 0;
}

/* No test may cause a violation or leave an object behind. */
static inline int end(void **state)
{
	char text[8192], *rest = text, *line;
	bool clean = sim_number("violations") == 0;

	(void)state;
	sim_write("process_exit", "1");
	assert_true(amdgpu_sim_read("objects", text, sizeof(text)) >= 0);
	while ((line = strsep(&rest, "\n")) && *line) {
		if (strtol(strchr(line, ' '), NULL, 10)) {
			print_error("left behind: %s\n", line);
			clean = false;
		}
	}
	return clean ? 0 : -1;
}

#define NO_FD UINT32_MAX
/* In the private data, the record of the process and that of one GPU come first. */
#define FIRST_RECORD 16u

/* A process with one BO on one GPU, in the form that CHECKPOINT saves. */
struct saved {
	struct kfd_criu_device_bucket device;
	struct kfd_criu_bo_bucket bos[4];
	uint8_t priv[4096];
	struct kfd_ioctl_criu_args args;
};

/* The process is paused meanwhile. */
static inline struct saved save(struct raw_process *process)
{
	struct kfd_ioctl_criu_args unpause = { .op = KFD_CRIU_OP_UNPAUSE };
	struct saved saved = { .args = { .op = KFD_CRIU_OP_PROCESS_INFO } };

	assert_int_equal(raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &saved.args), 0);
	assert_int_equal(saved.args.num_bos, 1);
	assert_true(saved.args.priv_data_size <= sizeof(saved.priv));
	saved.args.op = KFD_CRIU_OP_CHECKPOINT;
	saved.args.devices = (uintptr_t)&saved.device;
	saved.args.bos = (uintptr_t)saved.bos;
	saved.args.priv_data = (uintptr_t)saved.priv;
	assert_int_equal(raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &saved.args), 0);
	assert_int_equal(raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &unpause), 0);
	(void)close((int)saved.bos[0].dmabuf_fd);
	return saved;
}

/* Into a process that has no KFD state yet. Returns the result of RESTORE; the buffer gets a new
 * mmap offset. */
static inline int restore_saved(struct saved *saved, struct raw_process *process)
{
	int ret;

	assert_int_equal(raw_open(process), 0);
	assert_int_equal(raw_open_render(&process->gpu[0], &process->render[0]), 0);
	saved->args.op = KFD_CRIU_OP_RESTORE;
	saved->args.devices = (uintptr_t)&saved->device;
	saved->args.bos = (uintptr_t)saved->bos;
	saved->args.priv_data = (uintptr_t)saved->priv;
	saved->device.drm_fd = (uint32_t)process->render[0];
	saved->bos[0].dmabuf_fd = NO_FD;
	ret = raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &saved->args);
	/* also for a RESTORE that fails after the BOs */
	if (saved->bos[0].dmabuf_fd != NO_FD)
		(void)close((int)saved->bos[0].dmabuf_fd);
	return ret;
}

#endif
