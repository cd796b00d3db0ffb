// SPDX-License-Identifier: GPL-2.0-only
/* Prints lines to CRIU's log, with the prefixes that CRIU uses. */
#include "criu/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "criu/plugin_abi.h"

enum criu_log_level {
	CRIU_ERROR = 1,
	CRIU_WARN = 2,
	CRIU_INFO = 3,
	CRIU_DEBUG = 4,
};

extern void print_on_level(unsigned int level, const char *format, ...);

/* crun shows its user a line of CRIU's log only if the line contains "Error ". */
static const char *line_prefix(unsigned int level)
{
	switch (level) {
	case CRIU_ERROR:
		return "Error (" PLUGIN_NAME "): ";
	case CRIU_WARN:
		return "Warn  (" PLUGIN_NAME "): ";
	default:
		return PLUGIN_NAME ": ";
	}
}

static void print_line(unsigned int level, const char *format, va_list arguments, int error)
{
	const char *prefix = line_prefix(level);
	char line[1024];

	(void)vsnprintf(line, sizeof(line), format, arguments);
	if (error)
		print_on_level(level, "%s%s: %s\n", prefix, line, strerror(error));
	else
		print_on_level(level, "%s%s\n", prefix, line);
}

int log_error(int ret, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line(CRIU_ERROR, format, arguments, -ret);
	va_end(arguments);
	return ret;
}

#define DEFINE_LOG(name, level)                          \
	void name(const char *format, ...)               \
	{                                                \
		va_list arguments;                       \
                                                         \
		va_start(arguments, format);             \
		print_line(level, format, arguments, 0); \
		va_end(arguments);                       \
	}

DEFINE_LOG(log_warn, CRIU_WARN)
DEFINE_LOG(log_info, CRIU_INFO)
DEFINE_LOG(log_debug, CRIU_DEBUG)
