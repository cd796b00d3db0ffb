// SPDX-License-Identifier: GPL-2.0-only
/* Reads /proc of other tasks: who is traced by whom, and what is mapped. */
#include "amdgpu_plugin_proc.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

struct status {
	pid_t tracer;
	pid_t own_pid;
};

static int read_status(pid_t pid, struct status *ret_status)
{
	struct status status = { .tracer = -1, .own_pid = -1 };
	_cleanup_fclose_ FILE *file = NULL;
	char path[64], line[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return -ESRCH;
	while (fgets(line, sizeof(line), file)) {
		const char *innermost = strrchr(line, '\t');

		if (!innermost)
			continue;
		/* NSpid has one number a pid namespace, the innermost last. */
		if (!strncmp(line, "TracerPid:", 10))
			status.tracer = (pid_t)strtol(innermost, NULL, 10);
		else if (!strncmp(line, "NSpid:", 6))
			status.own_pid = (pid_t)strtol(innermost, NULL, 10);
	}
	if (status.tracer < 0 || status.own_pid < 0)
		return -ESRCH;
	*ret_status = status;
	return 0;
}

int proc_own_pid(pid_t pid, pid_t *ret_own_pid)
{
	struct status status;
	int ret = read_status(pid, &status);

	if (!ret)
		*ret_own_pid = status.own_pid;
	return ret;
}

int proc_find_tracee(pid_t own_pid, pid_t *ret_pid)
{
	DIR *stream = opendir("/proc");
	pid_t self = gettid(), found = -1;
	struct dirent *entry;

	if (!stream)
		return -errno;
	while (found < 0 && (entry = readdir(stream))) {
		struct status status;
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && !read_status(pid, &status) && status.tracer == self &&
		    status.own_pid == own_pid)
			found = pid;
	}
	(void)closedir(stream);
	if (found < 0)
		return -ESRCH;
	*ret_pid = found;
	return 0;
}

int proc_device_of_path(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned int minor;
	int end = 0;

	name = name ? name + 1 : path;
	if (!strcmp(name, "kfd"))
		return 0;
	if (sscanf(name, "renderD%u%n", &minor, &end) == 1 && !name[end] && minor > 0 &&
	    minor < 1u << 20)
		return (int)minor;
	return -ENOENT;
}

/* One line of maps: "start-end perms offset dev inode path". -ENOENT: not a device of interest. */
static int parse_mapping(char *line, struct proc_mapping *ret_mapping)
{
	struct proc_mapping mapping = { 0 };
	int path = 0, device;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &mapping.start,
		   &mapping.end, &mapping.offset, &path) < 3 || !path)
		return -ENOENT;
	line[strcspn(line, "\n")] = '\0';
	device = proc_device_of_path(line + path);
	if (device < 0)
		return device;
	mapping.render_minor = (uint32_t)device;
	*ret_mapping = mapping;
	return 0;
}

int proc_list_mappings(pid_t pid, struct proc_mapping **ret_mappings, size_t *ret_count)
{
	_cleanup_free_ struct proc_mapping *mappings = NULL;
	_cleanup_fclose_ FILE *file = NULL;
	_cleanup_free_ char *line = NULL;
	size_t count = 0, room = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (getline(&line, &room, file) >= 0) {
		struct proc_mapping mapping, *grown;

		if (parse_mapping(line, &mapping) < 0)
			continue;
		grown = realloc(mappings, (count + 1) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		mappings = grown;
		mappings[count++] = mapping;
	}
	if (ferror(file))
		return -EIO;
	*ret_mappings = take_ptr(&mappings);
	*ret_count = count;
	return 0;
}
