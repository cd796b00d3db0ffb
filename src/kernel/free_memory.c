// SPDX-License-Identifier: GPL-2.0-only
/* Reads /proc/meminfo. cgroup_room.c reads the limits. */
#include "kernel/free_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cgroup_room.h"

static int read_available(uint64_t *ret_bytes)
{
	_cleanup_fclose_ FILE *file = stream_open("/proc/meminfo");
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

int free_memory_find(uint64_t *ret_bytes)
{
	uint64_t bytes = 0, room = cgroup_room_find("memory");
	int ret = read_available(&bytes);

	if (ret < 0)
		return ret;
	*ret_bytes = room < bytes ? room : bytes;
	return 0;
}
