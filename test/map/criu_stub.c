// SPDX-License-Identifier: GPL-2.0-only
/* CRIU's functions for map-pairs and bench-map. The log goes to standard output, or nowhere. */
#include "criu_stub.h"

#include <stdarg.h>
#include <stdio.h>

#include "../criu_symbols.h"

static unsigned int log_level;

void criu_stub_set_log_level(unsigned int level)
{
	log_level = level;
}

void print_on_level(unsigned int level, const char *format, ...)
{
	va_list arguments;

	if (level > log_level)
		return;
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
}

int criu_get_image_dir(void)
{
	return -1;
}

int find_unused_fd_pid(pid_t pid)
{
	(void)pid;
	return 100;
}

int fdstore_add(int fd)
{
	(void)fd;
	return -1;
}

int fdstore_get(int id)
{
	(void)id;
	return -1;
}

int img_streamer_open(const char *name, int flags)
{
	(void)name;
	(void)flags;
	return -1;
}
