// SPDX-License-Identifier: GPL-2.0-only
/* CRIU's functions for plugins that all versions have. */
#include "criu_exports.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "criu_state.h"

#define INVENTORY "inventory.txt"

struct criu_state criu_state = { .image_dir = -1, .unused_fd = 64 };

void print_on_level(unsigned int level, const char *format, ...)
{
	va_list arguments;

	if (level > criu_state.log_level)
		return;
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
}

int criu_get_image_dir(void)
{
	return criu_state.image_dir;
}

int find_unused_fd_pid(pid_t pid)
{
	(void)pid;
	return criu_state.unused_fd;
}

int fdstore_add(int fd)
{
	if (criu_state.num_stored == CRIU_STORED_MAX)
		return -1;
	criu_state.stored[criu_state.num_stored] = fcntl(fd, F_DUPFD_CLOEXEC, CRIU_LOWEST_FD);
	return criu_state.num_stored++;
}

int fdstore_get(int id)
{
	return id < criu_state.num_stored ? dup(criu_state.stored[id]) : -1;
}

int criu_note_plugin(const char *name)
{
	int fd = openat(criu_state.image_dir, INVENTORY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);
	bool good = fd >= 0 && write(fd, name, strlen(name)) == (ssize_t)strlen(name);

	if (fd >= 0)
		(void)close(fd);
	return good ? 0 : -1;
}

bool criu_claim_plugin(const char *name, size_t length)
{
	char noted[64] = "";
	int fd = openat(criu_state.image_dir, INVENTORY, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, noted, sizeof(noted) - 1);

	if (fd >= 0)
		(void)close(fd);
	return got == (ssize_t)length && !memcmp(noted, name, length);
}
