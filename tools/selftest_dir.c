// SPDX-License-Identifier: GPL-2.0-only
/* The directory of a selftest. Its callers write the files. */
#include "selftest_dir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

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
