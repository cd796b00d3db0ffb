// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/free_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cgroup.h"

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

/* Returns UINT64_MAX if the file has no number, as in a cgroup without a limit. */
static uint64_t read_number(int cgroup, const char *name)
{
	uint64_t number;

	return read_number_at(cgroup, name, &number) < 0 ? UINT64_MAX : number;
}

static uint64_t left_in(int cgroup)
{
	uint64_t limit = read_number(cgroup, "memory.max");
	uint64_t used = limit == UINT64_MAX ? 0 : read_number(cgroup, "memory.current");

	return used < limit ? limit - used : 0;
}

/* Each cgroup has this file, and the directory above the mount has not. */
static bool is_cgroup(int directory)
{
	return directory >= 0 && !faccessat(directory, "cgroup.procs", F_OK, 0);
}

int free_memory_find(uint64_t *ret_bytes)
{
	_cleanup_close_ int cgroup = -1;
	uint64_t bytes = 0;
	int ret = read_available(&bytes);

	if (ret < 0)
		return ret;
	(void)cgroup_open_own(&cgroup);
	while (is_cgroup(cgroup)) {
		int parent = openat(cgroup, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		uint64_t left = left_in(cgroup);

		bytes = left < bytes ? left : bytes;
		(void)close(cgroup);
		cgroup = parent;
	}
	*ret_bytes = bytes;
	return 0;
}
