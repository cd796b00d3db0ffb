/* SPDX-License-Identifier: GPL-2.0-only */
/* A restored task in which everything but its images is valid: a pid that images can name, a
 * machine, a kernel and a GPU that accept all arguments. So only the plugin's own checks refuse an
 * image. One target includes this once. */
#ifndef TEST_FUZZ_RESTORE_H
#define TEST_FUZZ_RESTORE_H

#include "fuzz.h"

#include "fake_gpu.h"

#include <semaphore.h>

#include "framed.h"
#include "restore_hooks.h"

#define FUZZ_PID 4711

/* As in CRIU 4.2.1. */
extern char cr_plugin_ctl[224];
__attribute__((visibility("default"))) char cr_plugin_ctl[224];

pid_t getpid(void)
{
	return FUZZ_PID;
}

int shm_open(const char *name, int flags, mode_t mode)
{
	return open(unit_path("%s", name + 1), flags, mode);
}

static sem_t semaphore;

sem_t *sem_open(const char *name, int flags, ...)
{
	(void)name;
	(void)flags;
	return &semaphore;
}

int sem_close(sem_t *closed)
{
	(void)closed;
	return 0;
}

static inline void restore_begin(const char *machine)
{
	(void)setenv("AMDGPU_PARALLEL_RESTORE", "0", 1);
	promise(fake_gpu_begin(NULL) == 0);
	kernel.machine = machine;
	(void)add_process(FUZZ_PID);
	promise(CR_PLUGIN_DESC.init(STAGE_RESTORE) == 0);
}

static inline void restore_end(int ret)
{
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, ret);
	promise(fake_gpu_end(NULL) == 0);
}

#endif
