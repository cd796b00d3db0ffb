// SPDX-License-Identifier: GPL-2.0-only
/* A process with KFD state that lives while its images are restored. */
#include "original.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "criu_calls.h"
#include "raw_kfd.h"
#include "simulator.h"

#define BO_SIZE 65536u
#define PATTERN 0x5a

/* The records of the process, of one GPU and of one buffer of AMD's driver. */
struct records {
	uint32_t version, xnack;
	uint64_t gpu;
	uint32_t buffer[67], is_imported, flags, share_handle[4], pad;
};

/* RESTORE, on AMD's driver, of one buffer with the share handle @name, 32 hexadecimal digits.
 * Returns its memory, or NULL. */
static uint8_t *make_named(struct raw_process *process, const char *name)
{
	struct records records = { .version = 1 };
	struct kfd_criu_device_bucket device = { .user_gpu_id = process->gpu[0].gpu_id,
						 .actual_gpu_id = process->gpu[0].gpu_id };
	struct kfd_criu_bo_bucket bo = { .addr = 1ull << 40,
					 .size = BO_SIZE,
					 .gpu_id = device.user_gpu_id,
					 .alloc_flags = RAW_VRAM,
					 .dmabuf_fd = UINT32_MAX };
	struct kfd_ioctl_criu_args args = { .devices = (uintptr_t)&device,
					    .bos = (uintptr_t)&bo,
					    .priv_data = (uintptr_t)&records,
					    .priv_data_size = sizeof(records),
					    .num_devices = 1,
					    .num_bos = 1,
					    .op = KFD_CRIU_OP_RESTORE };
	uint32_t *words = records.share_handle;
	void *memory;

	if (sscanf(name, "%8x%8x%8x%8x", &words[0], &words[1], &words[2], &words[3]) != 4 ||
	    raw_open_render(&process->gpu[0], &process->render[0]) < 0)
		return NULL;
	device.drm_fd = (uint32_t)process->render[0];
	if (raw_ioctl(process->kfd, AMDKFD_IOC_CRIU_OP, &args) < 0)
		return NULL;
	memory = mmap(NULL, BO_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, process->render[0],
		      (off_t)bo.restored_offset);
	if (memory == MAP_FAILED)
		return NULL;
	return memset(memory, PATTERN, BO_SIZE);
}

static bool is_unchanged(const uint8_t *memory)
{
	for (size_t i = 0; memory && i < BO_SIZE; i++) {
		if (memory[i] != PATTERN)
			return false;
	}
	return true;
}

/* Ends when the other side closes its socket. */
static void live(int socket, const char *name)
{
	struct raw_process process;
	uint8_t *memory = NULL;
	char byte = 0;

	/* a process has a simulator of its own */
	if (simulator_write("kernel", "dkms") < 0 || raw_open(&process) < 0)
		_exit(1);
	if (strcmp(name, "none") != 0) {
		memory = make_named(&process, name);
		if (!memory)
			_exit(1);
	}
	if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 0)
		_exit(1);
	_exit(is_unchanged(memory) ? 0 : 1);
}

int original_start(pid_t own_pid, const char *name, struct original *ret_original)
{
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)fflush(stdout);
	ret_original->pid = fork();
	if (ret_original->pid == 0) {
		(void)close(pair[0]);
		live(pair[1], name);
	}
	(void)close(pair[1]);
	ret_original->socket = pair[0];
	if (ret_original->pid < 0 || read(pair[0], &byte, 1) != 1) {
		(void)fprintf(stderr, "original: it did not start\n");
		return -ECHILD;
	}
	return criu_believe("own_pid", "%d %d", own_pid, ret_original->pid);
}

int original_end(struct original *original, int ret)
{
	int status = 1;

	if (!original->pid)
		return ret;
	(void)close(original->socket);
	if (original->pid > 0)
		(void)waitpid(original->pid, &status, 0);
	original->pid = 0;
	if (status)
		(void)fprintf(stderr, "original: it has failed, or its memory has changed\n");
	return status ? -EIO : ret;
}
