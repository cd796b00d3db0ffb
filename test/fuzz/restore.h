/* SPDX-License-Identifier: GPL-2.0-only */
/* A restored task in which everything but its images is valid: a pid that images can name, a
 * machine, a kernel and a GPU that accept all arguments. So only the plugin's own checks refuse an
 * image. One target includes this once. */
#ifndef TEST_FUZZ_RESTORE_H
#define TEST_FUZZ_RESTORE_H

#include "fuzz.h"

#include "fake_gpu.h"

#include <linux/futex.h>
#include <semaphore.h>

#include "framed.h"
#include "image_of_one.h"
#include "memory.h"
#include "restore_hooks.h"

#define FUZZ_PID 4711
/* The GPU of the machine that the corpus names. */
#define FUZZ_GPU 1997

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

/* No task of another image comes, and an input must not take seconds. */
long syscall(long number, ...)
{
	static long (*next)(long, ...);
	va_list arguments;
	long a[6];

	va_start(arguments, number);
	for (size_t i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_futex && a[1] == FUTEX_WAIT && a[3]) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (!next)
		next = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static inline void restore_begin(const char *machine)
{
	(void)setenv("AMDGPU_PARALLEL_RESTORE", "0", 1);
	promise(fake_gpu_begin(NULL) == 0);
	kernel.machine = machine;
	(void)add_process(FUZZ_PID);
	fuzz_memory_begin();
	promise(CR_PLUGIN_DESC.init(STAGE_RESTORE) == 0);
}

static inline void restore_leave(int ret)
{
	criu_stub_close_stored();
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, ret);
	fuzz_memory_end();
	if (getenv("FUZZ_SHOW"))
		unit_show_lines();
}

static inline void restore_end(int ret)
{
	restore_leave(ret);
	promise(fake_gpu_end(NULL) == 0);
}

#endif
