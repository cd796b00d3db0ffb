// SPDX-License-Identifier: GPL-2.0-only
/* Checks libdrm's list of GPU names before libdrm reads it. */
#include "content/gpu_names.h"

#include <errno.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"

/* libdrm's list has 16 KiB and grows by a few lines a year. */
#define NAMES_SIZE_MAX (1 << 20)

/* libdrm reads its list of names to the end and allocates memory for each line. A task that loads
 * its own contents sees the files of its container, where the name may lead to a pipe or to
 * /dev/zero. libdrm ignores a list that it cannot open. */
static int check_names(const char *path)
{
	struct stat names;

	if (stat(path, &names) < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	return S_ISREG(names.st_mode) && names.st_size <= NAMES_SIZE_MAX ? 0 : -EMEDIUMTYPE;
}

/* The paths in the builds of distributions, of AMD, and in local builds. */
int gpu_names_check(void)
{
	static const char *const paths[] = {
		"/usr/share/libdrm/amdgpu.ids",
		"/opt/amdgpu/share/libdrm/amdgpu.ids",
		"/usr/local/share/libdrm/amdgpu.ids",
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(paths); i++)
		ret = check_names(paths[i]);
	return ret;
}
