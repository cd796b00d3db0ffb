// SPDX-License-Identifier: GPL-2.0-only
/* Finds mappings of memfds and of unlinked files in /proc/PID/maps. */
#include "kernel/unnamed_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"

/* What the kernel writes in place of a path: mmap() with MAP_ANONYMOUS and MAP_SHARED (shmem.c),
 * without and with huge pages (mm/mmap.c), and shmget() (ipc/shm.c). */
static const char *const anonymous[] = { "/dev/zero (deleted)", "/anon_hugepage (deleted)",
					 "/SYSV" };

static bool is_anonymous(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(anonymous); i++) {
		if (!strncmp(path, anonymous[i], strlen(anonymous[i])))
			return true;
	}
	return false;
}

/* Whether the file of the mapping has no name left. CRIU makes a name for a file that has another
 * one. */
static int is_unlinked(pid_t pid, const struct proc_range *mapping)
{
	struct stat file;
	char path[96];

	(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid,
		       mapping->start, mapping->end);
	/* Without the right to follow the link, the text of the line has to do. */
	if (stat(path, &file) < 0)
		return errno == EPERM ? 1 : -errno;
	return file.st_nlink == 0;
}

/* Parses a line of maps: "start-end perms offset dev inode path". */
static int is_unnamed(pid_t pid, const char *line, struct proc_range *ret_mapping)
{
	const char *path = strchr(line, '/');
	char rights[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &ret_mapping->start, &ret_mapping->end,
		   rights) != 3)
		return -EIO;
	if (rights[1] != 'w' || rights[3] != 's' || !path || !strstr(path, " (deleted)") ||
	    is_anonymous(path))
		return 0;
	return is_unlinked(pid, ret_mapping);
}

static bool has_address_of(const struct proc_range *mapping, const struct proc_range *ranges,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (mapping->start < ranges[i].end && ranges[i].start < mapping->end)
			return true;
	}
	return false;
}

int unnamed_files_find(pid_t pid, const struct proc_range *ranges, size_t count,
		       struct proc_range *ret_found)
{
	_cleanup_fclose_ FILE *file = NULL;
	_cleanup_free_ char *line = NULL;
	struct proc_range mapping;
	char path[64];
	size_t room = 0;
	int ret = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = stream_open(path);
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!ret && getline(&line, &room, file) >= 0) {
		ret = is_unnamed(pid, line, &mapping);
		if (ret > 0)
			ret = has_address_of(&mapping, ranges, count);
	}
	if (!ret)
		ret = stream_error(file);
	if (ret > 0)
		*ret_found = mapping;
	return ret;
}
