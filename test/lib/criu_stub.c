// SPDX-License-Identifier: GPL-2.0-only
#include "criu_stub.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Longer lines are cut. */
#define LINE_SIZE 4096

struct criu_stub criu_stub = { .image_dir = -1, .unused_fd = 100, .log_level = 4 };

void print_on_level(unsigned int level, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;

	if (level > criu_stub.log_level)
		return;
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (criu_stub.print)
		criu_stub.print(level, line);
	else
		(void)fputs(line, stderr);
}

int criu_get_image_dir(void)
{
	return criu_stub.image_dir;
}

int find_unused_fd_pid(pid_t pid)
{
	(void)pid;
	return criu_stub.unused_fd;
}

int fdstore_add(int fd)
{
	int copy;

	if (criu_stub.num_stored == CRIU_STUB_STORED_MAX)
		return -1;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, criu_stub.lowest_fd);
	if (copy < 0)
		return -1;
	criu_stub.stored[criu_stub.num_stored] = copy;
	return criu_stub.num_stored++;
}

int fdstore_get(int id)
{
	if (id < 0 || id >= criu_stub.num_stored)
		return -1;
	return dup(criu_stub.stored[id]);
}

int img_streamer_open(const char *name, int flags)
{
	return criu_stub.open_streamed ? criu_stub.open_streamed(name, flags) : -1;
}

/* As in CRIU 3.17.1: without lazy pages there is nothing to do. With them the function asks the
 * descriptor store, which only a restore has. */
int lazy_pages_setup_zombie(int pid)
{
	(void)pid;
	return criu_stub.is_lazy && !criu_stub.num_stored ? -1 : 0;
}

int criu_stub_keep_fd(int fd)
{
	int kept = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, criu_stub.lowest_fd);

	if (fd >= 0)
		(void)close(fd);
	return kept;
}

void criu_stub_close_stored(void)
{
	while (criu_stub.num_stored)
		(void)close(criu_stub.stored[--criu_stub.num_stored]);
}
