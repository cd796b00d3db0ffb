// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/cgroup_room.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cgroup.h"

/* Some hundred are for threads of the plugin: 8 GPUs at once with up to 12 each. The others are for
 * the job, and the plugin does not know how many threads that has. */
#define PIDS_WANTED 1000u

/* Returns UINT64_MAX if the file has no number, as in a cgroup without a limit. */
static uint64_t read_number(int cgroup, const char *controller, const char *file)
{
	uint64_t number;
	char name[32];

	(void)snprintf(name, sizeof(name), "%s.%s", controller, file);
	return read_number_at(cgroup, name, &number) < 0 ? UINT64_MAX : number;
}

static uint64_t left_in(int cgroup, const char *controller)
{
	uint64_t limit = read_number(cgroup, controller, "max");
	uint64_t used = limit == UINT64_MAX ? 0 : read_number(cgroup, controller, "current");

	return used < limit ? limit - used : 0;
}

/* Each cgroup has this file, and the directory above the mount has not. */
static bool is_cgroup(int directory)
{
	return directory >= 0 && !faccessat(directory, "cgroup.procs", F_OK, 0);
}

uint64_t cgroup_room_find(const char *controller)
{
	_cleanup_close_ int cgroup = -1;
	uint64_t room = UINT64_MAX;

	(void)cgroup_open_own(&cgroup);
	while (is_cgroup(cgroup)) {
		int parent = fd_open_at(cgroup, "..", O_RDONLY | O_DIRECTORY);
		uint64_t left = left_in(cgroup, controller);

		room = left < room ? left : room;
		(void)close(cgroup);
		cgroup = parent;
	}
	return room;
}

bool cgroup_room_has_threads(void)
{
	return cgroup_room_find("pids") >= PIDS_WANTED;
}
