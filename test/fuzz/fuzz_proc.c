// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the files of a process in /proc. The first byte selects status, mappings or the name of a
 * mapped device. */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel/proc.h"

static const uint8_t *text;
static size_t text_size;

/* The input replaces files in /proc. fmemopen() may refuse a size of 0. */
FILE *fopen(const char *path, const char *mode)
{
	int fd;

	if (text && !strncmp(path, "/proc/", 6)) {
		if (text_size)
			return fmemopen((void *)text, text_size, "r");
		path = "/dev/null";
	}
	fd = open(path, mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0600);
	return fd < 0 ? NULL : fdopen(fd, mode[0] == 'r' ? "r" : "w");
}

/* A mapping is one of a render node or of a regular file. */
int stat(const char *path, struct stat *result)
{
	if (strncmp(path, "/proc/1/map_files/", 18))
		return fstatat(AT_FDCWD, path, result, 0);
	*result = (struct stat){
		.st_mode = strlen(path) % 2 ? S_IFCHR : S_IFREG,
		.st_rdev = makedev(226, 128),
	};
	return 0;
}

static void read_maps(void)
{
	struct proc_mapping *mappings = NULL;
	size_t count = 0;

	if (proc_list_mappings(1, &mappings, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		promise(mappings[i].device == makedev(226, 128));
	free(mappings);
}

static void read_path(struct fuzz_input *input)
{
	char *path = fuzz_take_text(input);

	promise(proc_device_of_path(path) < 10000000);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = { bytes, size };
	uint64_t kind = fuzz_take_number(&input, 1) % 3;
	pid_t vpid = -1;

	if (kind == 0)
		read_path(&input);
	text = input.bytes;
	text_size = input.size;
	if (kind == 1)
		promise(proc_vpid(1, &vpid) < 0 || vpid >= 0);
	if (kind == 2)
		read_maps();
	text = NULL;
	return 0;
}
