// SPDX-License-Identifier: GPL-2.0-only
/* What the limits of cgroups leave. Directories stand for cgroups. */
#include "host.h"

#include "kernel/cgroup.h"
#include "kernel/cgroup_room.h"

#define OWN "cgroup/pod/container"

/* The plugin's call comes here. */
int __wrap_cgroup_open_own(int *ret_fd);
int __wrap_cgroup_open_own(int *ret_fd)
{
	int fd = open(unit_path(OWN), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void set(const char *cgroup, const char *file, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	unit_print(path, "%s\n", text);
}

static void make_cgroup(const char *path, const char *limit, const char *used)
{
	set(path, "cgroup.procs", "1");
	set(path, "pids.max", limit);
	set(path, "pids.current", used);
}

UNIT_TEST(the_cgroup_with_the_least_room_counts)
{
	static const struct {
		const char *limits[3], *used[3];
		uint64_t room;
	} rows[] = {
		{ { "max", "max", "max" }, { "7", "7", "7" }, UINT64_MAX },
		{ { "max", "max", "100" }, { "7", "7", "40" }, 60 },
		{ { "max", "100", "100" }, { "9", "50", "40" }, 50 },
		{ { "50", "100", "max" }, { "50", "50", "50" }, 0 },
		{ { "40", "max", "max" }, { "50", "50", "50" }, 0 },
	};

	/* Not a cgroup, so it is not read. */
	set(".", "pids.max", "1");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make_cgroup("cgroup", rows[i].limits[0], rows[i].used[0]);
		make_cgroup("cgroup/pod", rows[i].limits[1], rows[i].used[1]);
		make_cgroup(OWN, rows[i].limits[2], rows[i].used[2]);
		assert_int_equal(cgroup_room_find("pids"), rows[i].room);
	}
}

UNIT_TEST(a_cgroup_without_the_controller_has_the_limits_above_it)
{
	make_cgroup("cgroup", "100", "40");
	set(OWN "/..", "cgroup.procs", "1");
	set(OWN, "cgroup.procs", "1");
	assert_int_equal(cgroup_room_find("pids"), 60);
	assert_int_equal(cgroup_room_find("memory"), UINT64_MAX);
}

UNIT_TEST(threads_need_room_for_those_of_the_job)
{
	assert_true(cgroup_room_has_threads());
	make_cgroup(OWN, "2048", "1000");
	assert_true(cgroup_room_has_threads());
	make_cgroup(OWN, "2048", "1048");
	assert_true(cgroup_room_has_threads());
	make_cgroup(OWN, "2048", "1049");
	assert_false(cgroup_room_has_threads());
	make_cgroup(OWN, "max", "5000");
	assert_true(cgroup_room_has_threads());
}
