// SPDX-License-Identifier: GPL-2.0-only
/* Preloaded: the machine has the kernel RELEASE, and its render nodes answer HW_IP_ERROR (an errno)
 * to the question for copy engines, or have no rings (0). A variable that is not set changes
 * nothing. */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
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
