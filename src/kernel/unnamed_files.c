// SPDX-License-Identifier: GPL-2.0-only
/* Finds mappings of memfds and of unlinked files in /proc/PID/maps. */
#include "kernel/unnamed_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

struct unnamed {
	struct proc_range mapping;
	const char *path;
	uint64_t bytes; /* of the file's blocks, 0 if they are not known */
};

/* Whether the file of the mapping has no name left. CRIU makes a name for a file that has another
 * one. */
static int is_unlinked(pid_t pid, struct unnamed *found)
{
	struct stat file;
	int ret = proc_stat_mapped(pid, found->mapping, &file);

	/* Without the right to follow the link, the text of the line has to do. */
	if (ret < 0)
		return ret == -EPERM ? 1 : ret;
	found->bytes = (uint64_t)file.st_blocks * S_BLKSIZE;
	return file.st_nlink == 0;
}

/* Parses a line of maps: "start-end perms offset dev inode path". */
static int is_unnamed(pid_t pid, const char *line, struct unnamed *ret_found)
{
	const char *path = strchr(line, '/');
	char rights[5];

	*ret_found = (struct unnamed){ .path = path };
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &ret_found->mapping.start,
		   &ret_found->mapping.end, rights) != 3)
		return -EIO;
	if (rights[1] != 'w' || rights[3] != 's' || !path || !strstr(path, " (deleted)") ||
	    is_anonymous(path))
		return 0;
	return is_unlinked(pid, ret_found);
}

/* The mappings of a process, which are read one after the other. */
struct walk {
	pid_t pid;
	FILE *file;
	char *line;
	size_t room;
};

static void walk_done(struct walk *walk)
{
	if (walk->file)
		(void)fclose(walk->file);
	free(walk->line);
}

/* Return: 1, 0 at the end. */
static int walk_next(struct walk *walk, struct unnamed *ret_found)
{
	int ret = 0;

	while (!ret && getline(&walk->line, &walk->room, walk->file) >= 0)
		ret = is_unnamed(walk->pid, walk->line, ret_found);
	return ret ? ret : stream_error(walk->file);
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
	_cleanup_(walk_done) struct walk walk = { .pid = pid };
	struct unnamed found;
	int ret = proc_open_file(pid, "maps", &walk.file);

	if (ret < 0)
		return ret;
	do
		ret = walk_next(&walk, &found);
	while (ret > 0 && !has_address_of(&found.mapping, ranges, count));
	if (ret > 0)
		*ret_found = found.mapping;
	return ret;
}

int unnamed_files_largest(pid_t pid, uint64_t *ret_bytes)
{
	_cleanup_(walk_done) struct walk walk = { .pid = pid };
	struct unnamed found;
	int ret = proc_open_file(pid, "maps", &walk.file);

	*ret_bytes = 0;
	if (ret < 0)
		return ret;
	while ((ret = walk_next(&walk, &found)) > 0) {
		if (found.bytes > *ret_bytes && strncmp(found.path, "/memfd:", 7) != 0)
			*ret_bytes = found.bytes;
	}
	return ret;
}
