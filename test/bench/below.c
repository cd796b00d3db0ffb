// SPDX-License-Identifier: GPL-2.0-only
/* Measures the processor time of the calls that the simulator answers. Preload it before the
 * simulator: then each of these functions passes its arguments on to that of the same name in the
 * simulator. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *dlopen(const char *path, int flags);
EXPORTED int dlclose(void *library);

static uint64_t below_ns;
static __thread unsigned int depth;

static uint64_t own_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void enter(uint64_t *ret_begin_ns)
{
	if (!depth++)
		*ret_begin_ns = own_ns();
}

static void leave(uint64_t begin_ns)
{
	if (!--depth)
		(void)__atomic_add_fetch(&below_ns, own_ns() - begin_ns, __ATOMIC_RELAXED);
}

/* Their arguments and results are numbers and pointers, seven at most (syscall()). A caller that
 * passes fewer does not see the difference. */
#define FUNCTION(name)                                                                            \
	long below_##name(long a, long b, long c, long d, long e, long f, long g) __asm__(#name); \
	EXPORTED long below_##name(long a, long b, long c, long d, long e, long f, long g)        \
	{                                                                                         \
		static long (*simulator)(long, long, long, long, long, long, long);               \
		uint64_t begin_ns = 0;                                                            \
		long ret;                                                                         \
                                                                                                  \
		if (!simulator)                                                                   \
			simulator = (long (*)(long, long, long, long, long, long, long))dlsym(    \
				RTLD_NEXT, #name);                                                \
		enter(&begin_ns);                                                                 \
		ret = simulator(a, b, c, d, e, f, g);                                             \
		leave(begin_ns);                                                                  \
		return ret;                                                                       \
	}

FUNCTION(access)
FUNCTION(close)
FUNCTION(closedir)
FUNCTION(dup)
FUNCTION(dup2)
FUNCTION(dup3)
FUNCTION(faccessat)
FUNCTION(fcntl)
FUNCTION(fcntl64)
FUNCTION(fopen)
FUNCTION(fopen64)
FUNCTION(fstat)
FUNCTION(fstat64)
FUNCTION(fstatat)
FUNCTION(fstatat64)
FUNCTION(ioctl)
FUNCTION(kill)
FUNCTION(lseek)
FUNCTION(lseek64)
FUNCTION(lstat)
FUNCTION(lstat64)
FUNCTION(mmap)
FUNCTION(mmap64)
FUNCTION(munmap)
FUNCTION(open)
FUNCTION(open64)
FUNCTION(openat)
FUNCTION(openat64)
FUNCTION(opendir)
FUNCTION(readdir)
FUNCTION(readlink)
FUNCTION(recvmsg)
FUNCTION(stat)
FUNCTION(stat64)
FUNCTION(syscall)
FUNCTION(__open_2)
FUNCTION(__open64_2)
FUNCTION(__openat_2)
FUNCTION(__openat64_2)

/* The dump begins when the program loads the plugin. */
void *dlopen(const char *path, int flags)
{
	static void *(*next)(const char *, int);

	if (!next)
		next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	if (path && strstr(path, "/amdgpu_plugin.so"))
		below_ns = 0;
	return next(path, flags);
}

/* The first library that the program unloads is the plugin, after the dump. */
int dlclose(void *library)
{
	static int (*next)(void *);

	if (!next) {
		next = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
		printf("below_seconds %.6f\n", (double)below_ns / 1e9);
	}
	return next(library);
}
