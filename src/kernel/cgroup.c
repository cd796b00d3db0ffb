// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

/* The path of this process in the hierarchy of cgroup v2, whose line begins with "0::". It begins
 * at the root of its cgroup namespace. */
static int read_own_path(char *path, size_t size)
{
	_cleanup_fclose_ FILE *file = stream_open("/proc/self/cgroup");

	if (!file)
		return -errno;
	while (fgets(path, (int)size, file)) {
		if (strncmp(path, "0::/", 4))
			continue;
		path[strcspn(path, "\n")] = '\0';
		memmove(path, path + 3, strlen(path + 3) + 1);
		return 0;
	}
	return -ENOENT;
}

/* Parses a line of mountinfo: "id parent device root point options ... - type source options". */
static bool parse_mount(char *line, char **ret_root, char **ret_point)
{
	char *fields[5], *rest = line;

	if (!strstr(line, " - cgroup2 "))
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

int cgroup_open_own(int *ret_fd)
{
	_cleanup_fclose_ FILE *mounts = NULL;
	_cleanup_free_ char *line = NULL;
	char path[PATH_MAX];
	size_t room = 0;
	int fd = -ENOENT;
	int ret = read_own_path(path, sizeof(path));

	if (ret < 0)
		return ret;
	mounts = stream_open("/proc/self/mountinfo");
	if (!mounts)
		return -errno;
	while (fd < 0 && getline(&line, &room, mounts) >= 0) {
		char *root, *point;

		if (parse_mount(line, &root, &point))
			fd = open_below(path, root, point);
	}
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
