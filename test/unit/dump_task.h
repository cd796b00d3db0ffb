/* SPDX-License-Identifier: GPL-2.0-only */
/* A process with GPUs, traced as in a dump, and the hooks that dump it. Included by
 * a test program once. */
#ifndef TEST_UNIT_DUMP_TASK_H
#define TEST_UNIT_DUMP_TASK_H

#include "fake_gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "criu/plugin_abi.h"
#include "image/image.h"

extern struct criu_plugin_desc CR_PLUGIN_DESC;

#define GPU_A 1997
#define GPU_B 57300

static pid_t tracee, other_tracee;

/* The errno of a system call; 0: the kernel answers it. NULL: it answers all. */
static int (*failing_syscall)(long number);

/* Takes the place of the C library's, and knows the descriptors of fake processes. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	errno = failing_syscall ? failing_syscall(number) : 0;
	if (errno)
		return -1;
	if (!real)
		real = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_pidfd_getfd && a[1] >= KFD_FDS)
		return dup((int)a[1] - KFD_FDS);
	if (number == SYS_kcmp && a[4] >= KFD_FDS)
		return real(number, a[0], a[0], a[2], a[3], a[4] - KFD_FDS);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The process that is dumped must be one that this thread traces. */
static inline int start_tracee(void)
{
	tracee = unit_start_sleeper();
	return (int)ptrace(PTRACE_SEIZE, tracee, 0, PTRACE_O_EXITKILL);
}

static inline int begin(void **state)
{
	return start_tracee() < 0 ? -1 : fake_gpu_begin(state);
}

static inline int end(void **state)
{
	unit_end_sleeper(tracee);
	if (other_tracee)
		unit_end_sleeper(other_tracee);
	other_tracee = 0;
	return fake_gpu_end(state);
}

static inline void start_dump(void)
{
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_DUMP), 0);
}

static inline int dump_file(int fd, int id)
{
	int (*hook)(int, int) = CR_PLUGIN_DESC.hooks[HOOK_DUMP_EXT_FILE];

	return hook(fd, id);
}

/* CRIU shows the file of a mapping. */
static inline int show_vma(int fd)
{
	int (*hook)(int, const struct stat *) = CR_PLUGIN_DESC.hooks[HOOK_HANDLE_DEVICE_VMA];
	struct stat stat;

	assert_int_equal(fstat(fd, &stat), 0);
	return hook(fd, &stat);
}

/* The dump begins, and shows a first file, which it must take. */
static inline void begin_dump(int fd, int id)
{
	start_dump();
	assert_int_equal(dump_file(fd, id), 0);
}

/* CRIU 4.0 and newer name the tasks before they show files. */
static inline void name_task(pid_t pid)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_PAUSE_DEVICES];

	assert_int_equal(hook(pid), -ENOTSUP);
}

/* CRIU has shown all files. 0 or -errno. */
static inline int complete_dump(void)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_DUMP_DEVICES_LATE];
	int ret = hook(tracee);

	/* Other plugins have the hook, too. */
	assert_int_not_equal(ret, 0);
	return ret == -ENOTSUP ? 0 : ret;
}

static inline int finish_dump(int result)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_DUMP_FINISH];

	return hook(result);
}

static inline void end_dump(int result)
{
	CR_PLUGIN_DESC.exit(STAGE_DUMP, result);
}

/* A whole dump of a file. */
static inline void dump_one(int fd, int id)
{
	begin_dump(fd, id);
	end_dump(0);
}

/* A whole dump of a process, whose id is 5. */
static inline void dump_process(const struct fake_process *process)
{
	_cleanup_close_ int fd = open_kfd_of(process);

	dump_one(fd, 5);
}

/* A process that computes on two GPUs, the first of which it knows by another id;
 * no BO with contents. */
static inline struct fake_process *make_process(void)
{
	struct fake_process *process = add_process(tracee);

	add_device(process, 0xbeef, GPU_A);
	add_device(process, GPU_B, GPU_B);
	add_bo(process, 0xbeef, KFD_BO_DOORBELL, 0x1000, 0x2000,
	       3ULL << 62 | (uint64_t)GPU_A << 46);
	add_bo(process, GPU_B, KFD_BO_USERPTR | 1u << 31, 0x700000, 0x123000, 0);
	process->num_objects = 3;
	return process;
}

/* Makes @process, which has no open files yet, another task of the dump. */
static inline struct fake_process *move_to_other_task(struct fake_process *process)
{
	other_tracee = unit_start_sleeper();
	assert_int_equal(ptrace(PTRACE_SEIZE, other_tracee, 0, PTRACE_O_EXITKILL), 0);
	process->pid = other_tracee;
	return process;
}

/* What fails, and how: the dump must fail with one line that has these words, no process stay
 * paused, no main image be there, nothing be left open. */
static inline void assert_dump_fails(struct fake_process *process, const char *words)
{
	int fd = open_kfd_of(process);

	unit_forget_lines();
	start_dump();
	assert_fails(dump_file(fd, 5));
	assert_logged("Error (amdgpu_plugin): ", words);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	end_dump(-1);
	assert_int_equal(process->paused, 0);
	assert_int_equal(process->calls[KFD_UNPAUSE], process->calls[KFD_PROCESS_INFO]);
	(void)close(fd);
}

#define TEST(name) TEST_WITH(name, begin, end)

#endif
