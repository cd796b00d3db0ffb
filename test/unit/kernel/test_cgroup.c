// SPDX-License-Identifier: GPL-2.0-only
/* What the limits of cgroups leave. Directories stand for cgroups. */
#include "host.h"

#include "kernel/cgroup.h"

#define OWN  "cgroup/pod/container"
#define NONE "9223372036854771712"

/* The files of this process in /proc are two files of the test. */
FILE *fopen(const char *path, const char *mode)
{
	int fd;

	if (!strcmp(path, "/proc/self/cgroup"))
		path = unit_path("self-cgroup");
	if (!strcmp(path, "/proc/self/mountinfo"))
		path = unit_path("self-mountinfo");
	fd = open(path, mode[0] == 'w' ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
	return fd < 0 ? NULL : fdopen(fd, mode[0] == 'w' ? "w" : "r");
}

static void set(const char *cgroup, const char *file, const char *text)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	unit_print(path, "%s\n", text);
}

/* What a mount shows: the cgroup @root at @point. Without a @point, the mount does not exist. */
struct mount {
	const char *root, *point;
};

static void add_mount(FILE *mounts, const struct mount *mount, const char *kind)
{
	if (mount->point)
		(void)fprintf(mounts, "31 20 0:27 %s %s rw shared:3 - %s\n", mount->root,
			      unit_path(mount->point), kind);
}

/* /proc/self/mountinfo. */
static void mount_all(const struct mount *unified, const struct mount *memory,
		      const struct mount *pids)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "w");

	assert_non_null(mounts);
	(void)fprintf(mounts, "30 20 0:26 / /elsewhere rw - tmpfs tmpfs rw\n");
	add_mount(mounts, unified, "cgroup2 cgroup2 rw,nsdelegate");
	add_mount(mounts, memory, "cgroup cgroup rw,memory");
	add_mount(mounts, pids, "cgroup cgroup rw,cpu,pids");
	assert_int_equal(fclose(mounts), 0);
}

/* This process is in the cgroup OWN of version 2. */
static void join(void)
{
	unit_print("self-cgroup", "0::/pod/container\n");
	mount_all(&(struct mount){ "/", "cgroup" }, &(struct mount){ 0 }, &(struct mount){ 0 });
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

	join();
	/* Not a cgroup, so it is not read. */
	set(".", "pids.max", "1");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make_cgroup("cgroup", rows[i].limits[0], rows[i].used[0]);
		make_cgroup("cgroup/pod", rows[i].limits[1], rows[i].used[1]);
		make_cgroup(OWN, rows[i].limits[2], rows[i].used[2]);
		assert_int_equal(cgroup_find_room("pids"), rows[i].room);
	}
}

UNIT_TEST(a_cgroup_without_the_controller_has_the_limits_above_it)
{
	join();
	make_cgroup("cgroup", "100", "40");
	set(OWN "/..", "cgroup.procs", "1");
	set(OWN, "cgroup.procs", "1");
	assert_int_equal(cgroup_find_room("pids"), 60);
	assert_int_equal(cgroup_find_room("memory"), UINT64_MAX);
}

static void make_old_memory(const char *path, const char *limit, const char *used)
{
	set(path, "cgroup.procs", "1");
	set(path, "memory.limit_in_bytes", limit);
	set(path, "memory.usage_in_bytes", used);
}

/* Hierarchies of version 1: memory has one, pids shares one with another controller. */
static void make_old_cgroups(void)
{
	make_old_memory("memory", NONE, "900");
	make_old_memory("memory/slurm", "1000", "400");
	make_old_memory("memory/slurm/job", NONE, "300");
	set("pids", "cgroup.procs", "1");
	make_cgroup("pids/slurm", "500", "100");
	make_cgroup("pids/slurm/job", "max", "50");
}

#define OLD_LINES "12:memory:/slurm/job\n5:cpu,pids:/slurm/job\n"

UNIT_TEST(limits_of_version_1_count)
{
	static const struct {
		const char *name, *lines;
		struct mount unified, memory, pids;
		uint64_t memory_room, pids_room;
	} rows[] = {
		{ "version 1",
		  OLD_LINES "1:name=systemd:/\n",
		  { 0 },
		  { "/", "memory" },
		  { "/", "pids" },
		  600,
		  400 },
		{ "hybrid",
		  OLD_LINES "0::/pod\n",
		  { "/", "unified" },
		  { "/", "memory" },
		  { "/", "pids" },
		  600,
		  60 },
		{ "pids in version 2",
		  "12:memory:/slurm/job\n0::/pod\n",
		  { "/", "unified" },
		  { "/", "memory" },
		  { 0 },
		  600,
		  60 },
		{ "a container",
		  OLD_LINES,
		  { 0 },
		  { "/slurm", "memory/slurm" },
		  { "/slurm/job", "inside" },
		  600,
		  150 },
		{ "without mounts", OLD_LINES, { 0 }, { 0 }, { 0 }, UINT64_MAX, UINT64_MAX },
		{ "other controllers",
		  "12:memory2:/slurm/job\n5:cpu,pid:/slurm/job\n",
		  { 0 },
		  { "/", "memory" },
		  { "/", "pids" },
		  UINT64_MAX,
		  UINT64_MAX },
	};

	make_old_cgroups();
	make_cgroup("unified/pod", "100", "40");
	make_cgroup("inside", "200", "50");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		print_message("case %s\n", rows[i].name);
		unit_print("self-cgroup", "%s", rows[i].lines);
		mount_all(&rows[i].unified, &rows[i].memory, &rows[i].pids);
		assert_int_equal(cgroup_find_room("memory"), rows[i].memory_room);
		assert_int_equal(cgroup_find_room("pids"), rows[i].pids_room);
	}
}

UNIT_TEST(threads_need_room_for_those_of_the_job)
{
	join();
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
