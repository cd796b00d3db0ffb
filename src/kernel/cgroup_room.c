// SPDX-License-Identifier: GPL-2.0-only
/* Walks from this process's cgroup up to the root of its mount, and takes the least of what each
 * limit leaves. */
#include "kernel/cgroup_room.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cgroup.h"

/* Some hundred are for threads of the plugin: 8 GPUs at once with up to 12 each. The others are for
 * the job, and the plugin does not know how many threads that has. */
#define PIDS_WANTED 1000u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Version 1 has for no limit the largest number of bytes in whole pages (PAGE_COUNTER_MAX). */
#define LIMIT_MAX (UINT64_C(1) << 62)

/* Returns UINT64_MAX if the file has no number, or none that limits anything. */
static uint64_t read_number(int cgroup, const char *controller, const char *file)
{
	uint64_t number;
	char name[32];

	(void)snprintf(name, sizeof(name), "%s.%s", controller, file);
	return read_number_at(cgroup, name, &number) < 0 || number > LIMIT_MAX ? UINT64_MAX
									       : number;
}

/* The files of @controller: of the limit, and of what is used of it. */
static uint64_t left_by(int cgroup, const char *controller, const char *most, const char *used)
{
	uint64_t limit = read_number(cgroup, controller, most);
	uint64_t number = limit == UINT64_MAX ? 0 : read_number(cgroup, controller, used);

	return number < limit ? limit - number : 0;
}

/* Version 1 has names of its own for the files of memory. */
static uint64_t left_in(int cgroup, const char *controller)
{
	return least(left_by(cgroup, controller, "max", "current"),
		     left_by(cgroup, controller, "limit_in_bytes", "usage_in_bytes"));
}

/* Each cgroup has this file, and the directory above the mount has not. */
static bool is_cgroup(int directory)
{
	return directory >= 0 && !faccessat(directory, "cgroup.procs", F_OK, 0);
}

/* The least that the cgroup @own, which this function closes, and those above it leave. */
static uint64_t find_from(int own, const char *controller)
{
	_cleanup_close_ int cgroup = own;
	uint64_t room = UINT64_MAX;

	while (is_cgroup(cgroup)) {
		int parent = fd_open_at(cgroup, "..", O_RDONLY | O_DIRECTORY);

		room = least(room, left_in(cgroup, controller));
		(void)close(cgroup);
		cgroup = parent;
	}
	return room;
}

uint64_t cgroup_room_find(const char *controller)
{
	int own = -1, own_v1 = -1;

	(void)cgroup_open_own(NULL, &own);
	(void)cgroup_open_own(controller, &own_v1);
	return least(find_from(own, controller), find_from(own_v1, controller));
}

bool cgroup_room_has_threads(void)
{
	return cgroup_room_find("pids") >= PIDS_WANTED;
}
