// SPDX-License-Identifier: GPL-2.0-only
/* The functions of CRIU that the units of the plugin call. A tool has a log and an image directory,
 * or an archive whose images it serves as streams, and no tasks. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image_archive.h"

/* CRIU's levels: 1 is an error, 2 a warning. Others are of no interest here. */
#define LEVEL_WARN 2

static int image_dir = -1;
static struct image_archive *archive;

int host_open_directory(const char *path)
{
	int fd = fd_open(path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return log_error(fd, "cannot open directory %s", path);
	image_dir = fd;
	return 0;
}

/* O_NONBLOCK: an open() of a pipe must not block. */
int host_open_images(const char *path)
{
	const char *file = strcmp(path, "-") ? path : "/dev/stdin";
	_cleanup_close_ int fd = fd_open(file, O_RDONLY | O_NONBLOCK);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return log_error(fd < 0 ? fd : -errno, "cannot open %s", path);
	if (S_ISDIR(stat.st_mode)) {
		image_dir = take_fd(&fd);
		return 0;
	}
	if (!S_ISREG(stat.st_mode))
		return log_error(
			-EOPNOTSUPP,
			"cannot open %s: neither a directory nor a file; an archive is read more than once, so save it to a file",
			path);
	host_set_streaming();
	return image_archive_read(path, take_fd(&fd), &archive);
}

void host_close_images(void)
{
	image_archive_free(&archive);
	fd_close(&image_dir);
}

const struct image_archive *host_archive(void)
{
	return archive;
}

int host_open_file(const char *name)
{
	return archive ? image_archive_open(archive, name)
		       : fd_open_at(image_dir, name, O_RDONLY | O_NONBLOCK);
}

/* The user did not start the plugin, so its name is of no interest. */
static const char *skip_prefix(const char *line)
{
	const char *end = strstr(line, "amdgpu_plugin");

	end = end ? strstr(end, ": ") : NULL;
	return end ? end + 2 : line;
}

/* The lines of a refusal and of damaged contents say more than the names of these errors. */
static void drop_error(char *line)
{
	static const int errors[] = { EOPNOTSUPP, EBADMSG };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		char text[64];
		size_t length = strlen(line), size;

		size = (size_t)snprintf(text, sizeof(text), ": %s\n", strerror(errors[i]));
		if (length > size && !strcmp(line + length - size, text))
			(void)strcpy(line + length - size, "\n");
	}
}

void print_on_level(unsigned int level, const char *format, ...);
void print_on_level(unsigned int level, const char *format, ...)
{
	char line[4096];
	va_list arguments;

	if (level > LEVEL_WARN)
		return;
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	drop_error(line);
	/* In the order of time, also if both are one file. */
	(void)fflush(stdout);
	(void)fprintf(stderr, "criu-amdgpu: %s%s", level == LEVEL_WARN ? "warning: " : "",
		      skip_prefix(line));
}

int criu_get_image_dir(void);
int criu_get_image_dir(void)
{
	return image_dir;
}

int find_unused_fd_pid(pid_t pid);
int find_unused_fd_pid(pid_t pid)
{
	(void)pid;
	return -1;
}

int fdstore_add(int fd);
int fdstore_add(int fd)
{
	(void)fd;
	return -1;
}

int fdstore_get(int id);
int fdstore_get(int id)
{
	(void)id;
	return -1;
}

int img_streamer_open(const char *name, int flags);
int img_streamer_open(const char *name, int flags)
{
	(void)flags;
	return archive ? image_archive_open(archive, name) : -1;
}
