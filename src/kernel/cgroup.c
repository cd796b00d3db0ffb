// SPDX-License-Identifier: GPL-2.0-only
/* Finds the path of this process's cgroup in /proc/self/cgroup, and where it is mounted in
 * /proc/self/mountinfo. What the limits leave is the least on the way from there up to the root of
 * the mount. */
#include "kernel/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

/* Some hundred are for threads of the plugin: 8 GPUs at once with up to 12 each. The others are for
 * the job, and the plugin does not know how many threads that has. */
#define PIDS_WANTED 1000u

/* Version 1 has for no limit the largest number of bytes in whole pages (PAGE_COUNTER_MAX). */
#define LIMIT_MAX (UINT64_C(1) << 62)

/* Whether the list, with commas, has @item. */
static bool has_item(const char *list, const char *item)
{
	const size_t length = strlen(item);

	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (!strncmp(list, item, length) && strchr(",\n", list[length]))
			return true;
	}
	return false;
}

/* The path in a line of /proc/self/cgroup: "number:controllers:path", or NULL if the line is of
 * another hierarchy than that of @controller. Version 2 has no controllers there. */
static const char *parse_cgroup(char *line, const char *controller)
{
	const char *controllers;

	(void)strsep(&line, ":");
	controllers = strsep(&line, ":");
	if (!line || line[0] != '/' ||
	    (controller ? !has_item(controllers, controller) : *controllers))
		return NULL;
	return line;
}

/* The path of this process in a hierarchy. It begins at the root of its cgroup namespace. */
static int read_own_path(const char *controller, char path[static PATH_MAX])
{
	_cleanup_fclose_ FILE *file = stream_open("/proc/self/cgroup");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	if (!file)
		return -errno;
	while (getline(&line, &room, file) >= 0) {
		const char *found = parse_cgroup(line, controller);

		if (!found)
			continue;
		(void)snprintf(path, PATH_MAX, "%.*s", (int)strcspn(found, "\n"), found);
		return 0;
	}
	return -ENOENT;
}

/* Whether a line of mountinfo is of the hierarchy. Options of version 1 end with controllers. */
static bool is_of_hierarchy(const char *line, const char *controller)
{
	const char *type = strstr(line, " - ");
	const char *options = type ? strrchr(type, ' ') + 1 : NULL;

	if (!type)
		return false;
	if (!controller)
		return !strncmp(type, " - cgroup2 ", strlen(" - cgroup2 "));
	return !strncmp(type, " - cgroup ", strlen(" - cgroup ")) && has_item(options, controller);
}

/* Opens cgroup @path below the mount of cgroup @root at @point. -ENOENT: this mount does not show
 * it. */
static int open_below(const char *path, const char *root, const char *point)
{
	size_t length = strcmp(root, "/") ? strlen(root) : 0;
	char name[2 * PATH_MAX];

	if (strncmp(path, root, length) || (length && path[length] && path[length] != '/'))
		return -ENOENT;
	(void)snprintf(name, sizeof(name), "%s/%s", point, path + length);
	return fd_open(name, O_RDONLY | O_DIRECTORY);
}

int cgroup_open_own(const char *controller)
{
	_cleanup_fclose_ FILE *mounts = NULL;
	_cleanup_free_ char *line = NULL;
	char path[PATH_MAX], root[PATH_MAX], point[PATH_MAX];
	size_t room = 0;
	int fd = -ENOENT;
	int ret = read_own_path(controller, path);

	if (ret < 0)
		return ret;
	mounts = stream_open("/proc/self/mountinfo");
	if (!mounts)
		return -errno;
	/* "id parent device root point options ... - type source options" */
	while (fd < 0 && getline(&line, &room, mounts) >= 0) {
		if (is_of_hierarchy(line, controller) &&
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2)
			fd = open_below(path, root, point);
	}
	return fd;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

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

/* The least that the cgroup @own and those above it leave. Closes @own, which may be -errno. */
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

uint64_t cgroup_find_room(const char *controller)
{
	return least(find_from(cgroup_open_own(NULL), controller),
		     find_from(cgroup_open_own(controller), controller));
}

bool cgroup_room_has_threads(void)
{
	return cgroup_find_room("pids") >= PIDS_WANTED;
}

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

int cgroup_find_memory(uint64_t *ret_bytes)
{
	uint64_t bytes = 0, room = cgroup_find_room("memory");
	int ret = read_available(&bytes);

	if (ret < 0)
		return ret;
	*ret_bytes = least(room, bytes);
	return 0;
}
