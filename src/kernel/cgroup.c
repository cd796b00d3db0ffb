// SPDX-License-Identifier: GPL-2.0-only
/* Finds the path of this process's cgroup in /proc/self/cgroup, and where it is mounted in
 * /proc/self/mountinfo. */
#include "kernel/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

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

/* Parses a line of mountinfo: "id parent device root point options ... - type source options". */
static bool parse_mount(char *line, const char *controller, char **ret_root, char **ret_point)
{
	char *fields[5], *rest = line;

	if (!is_of_hierarchy(line, controller))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		fields[i] = strsep(&rest, " ");
		if (!fields[i])
			return false;
	}
	*ret_root = fields[3];
	*ret_point = fields[4];
	return true;
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

int cgroup_open_own(const char *controller, int *ret_fd)
{
	_cleanup_fclose_ FILE *mounts = NULL;
	_cleanup_free_ char *line = NULL;
	char path[PATH_MAX];
	size_t room = 0;
	int fd = -ENOENT;
	int ret = read_own_path(controller, path);

	if (ret < 0)
		return ret;
	mounts = stream_open("/proc/self/mountinfo");
	if (!mounts)
		return -errno;
	while (fd < 0 && getline(&line, &room, mounts) >= 0) {
		char *root, *point;

		if (parse_mount(line, controller, &root, &point))
			fd = open_below(path, root, point);
	}
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
