// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/free_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

#define CGROUPS "/sys/fs/cgroup"

static int read_available(uint64_t *ret_bytes)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/meminfo", "re");
	char line[256];
	uint64_t kib;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1) {
			*ret_bytes = kib << 10;
			return 0;
		}
	}
	return -EIO;
}

/* UINT64_MAX: there is no such number, as in a cgroup without a limit. */
static uint64_t read_number(const char *cgroup, const char *name)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[PATH_MAX];
	uint64_t number;

	(void)snprintf(path, sizeof(path), CGROUPS "%s/%s", cgroup, name);
	file = fopen(path, "re");
	return file && fscanf(file, "%" SCNu64, &number) == 1 ? number : UINT64_MAX;
}

/* "0::PATH" is the cgroup of version 2. */
static void read_cgroup(char *path, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	path[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::", 3))
			(void)snprintf(path, size, "%s", line + 3);
	}
}

int free_memory_find(uint64_t *ret_bytes)
{
	char cgroup[PATH_MAX];
	uint64_t bytes = 0;
	int ret = read_available(&bytes);

	if (ret < 0)
		return ret;
	read_cgroup(cgroup, sizeof(cgroup));
	for (char *end = strrchr(cgroup, '/'); end; end = strrchr(cgroup, '/')) {
		uint64_t limit = read_number(cgroup, "memory.max");
		uint64_t used = limit == UINT64_MAX ? 0 : read_number(cgroup, "memory.current");
		uint64_t left = used < limit ? limit - used : 0;

		bytes = left < bytes ? left : bytes;
		*end = '\0';
	}
	*ret_bytes = bytes;
	return 0;
}
