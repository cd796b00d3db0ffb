// SPDX-License-Identifier: GPL-2.0-only
/* The directory of a selftest. Its callers write the files. */
#include "selftest_dir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"

#define DIRECTORIES_OPEN 8

int selftest_dir_make(const char *parent, char path[PATH_MAX])
{
	char real[PATH_MAX];

	if (!realpath(parent, real))
		return -errno;
	if (snprintf(path, PATH_MAX, "%s/criu-amdgpu-selftest-XXXXXX", real) >= PATH_MAX)
		return -ENAMETOOLONG;
	return mkdtemp(path) ? 0 : -errno;
}

static int remove_one(const char *path, const struct stat *file, int flag, struct FTW *place)
{
	(void)file;
	(void)flag;
	(void)place;
	(void)remove(path);
	return 0;
}

void selftest_dir_remove(const char *path)
{
	(void)nftw(path, remove_one, DIRECTORIES_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void count_file(const char *path, const char *name, uint64_t *bytes)
{
	struct stat file;
	char whole[PATH_MAX];

	if (snprintf(whole, sizeof(whole), "%s/%s", path, name) < PATH_MAX && !stat(whole, &file) &&
	    S_ISREG(file.st_mode))
		*bytes += (uint64_t)file.st_size;
}

uint64_t selftest_dir_count_images(const char *path)
{
	_cleanup_closedir_ DIR *stream = opendir(path);
	struct dirent *entry;
	uint64_t bytes = 0;
	int error = 0;

	while (stream && (entry = next_entry(stream, &error))) {
		if (strstr(entry->d_name, ".img"))
			count_file(path, entry->d_name, &bytes);
	}
	return bytes;
}
