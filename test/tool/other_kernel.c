// SPDX-License-Identifier: GPL-2.0-only
/* Preloaded: the machine has the kernel RELEASE, and its render nodes answer HW_IP_ERROR (an errno)
 * to the question for copy engines, or have no rings (0). The file LOST is not there. Yama's file
 * has YAMA. A variable that is not set changes nothing. */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int uname(struct utsname *name)
{
	const char *release = getenv("RELEASE");
	int ret = (int)syscall(SYS_uname, name);

	if (!ret && release)
		(void)snprintf(name->release, sizeof(name->release), "%s", release);
	return ret;
}

int amdgpu_query_hw_ip_info(amdgpu_device_handle device, unsigned type, unsigned instance,
			    struct drm_amdgpu_info_hw_ip *info)
{
	int (*query)(amdgpu_device_handle device, unsigned type, unsigned instance,
		     struct drm_amdgpu_info_hw_ip *info) =
		dlsym(RTLD_NEXT, "amdgpu_query_hw_ip_info");
	const char *error = getenv("HW_IP_ERROR");
	int ret = error ? -atoi(error) : 0;

	ret = ret ? ret : query(device, type, instance, info);
	if (!ret && error)
		info->available_rings = 0;
	return ret;
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *path, const char *mode) = dlsym(RTLD_NEXT, "fopen");
	char *scope = getenv("YAMA");

	if (strcmp(path, "/proc/sys/kernel/yama/ptrace_scope"))
		return next(path, mode);
	errno = ENOENT;
	return scope ? fmemopen(scope, strlen(scope), "r") : NULL;
}

int open(const char *path, int flags, ...)
{
	int (*next)(const char *path, int flags, ...) = dlsym(RTLD_NEXT, "open");
	const char *lost = getenv("LOST");
	va_list arguments;
	mode_t mode;

	if (lost && !strcmp(path, lost)) {
		errno = ENOENT;
		return -1;
	}
	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	return next(path, flags, mode);
}
