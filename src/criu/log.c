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

/* The room for the text of an errno value. */
#define CAUSE_SIZE 64

extern void print_on_level(unsigned int level, const char *format, ...);

/* CRIU has one log, and so the plugin has one first line of it. */
static struct log_first *kept;

/* crun shows its user a line of CRIU's log only if the line contains "Error ". */
static const char *const prefixes[] = {
	[CRIU_ERROR] = "Error (" PLUGIN_NAME "): ",
	[CRIU_WARN] = "Warn  (" PLUGIN_NAME "): ",
	[CRIU_INFO] = PLUGIN_NAME ": ",
	[CRIU_DEBUG] = PLUGIN_NAME ": ",
};

static void print_line(enum criu_log_level level, const char *line)
{
	print_on_level(level, "%s%s\n", prefixes[level], line);
}

static void keep_first(const char *line)
{
	if (!kept || __atomic_exchange_n(&kept->taken, true, __ATOMIC_ACQ_REL))
		return;
	(void)snprintf(kept->line, sizeof(kept->line), "%s", line);
	__atomic_store_n(&kept->complete, true, __ATOMIC_RELEASE);
}

void log_keep_first(struct log_first *first)
{
	kept = first;
}

const char *log_first_error(void)
{
	return kept && __atomic_load_n(&kept->complete, __ATOMIC_ACQUIRE) ? kept->line : NULL;
}

int log_error(int ret, const char *format, ...)
{
	char line[LOG_LINE_SIZE];
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line) - CAUSE_SIZE, format, arguments);
	va_end(arguments);
	length = strlen(line);
	if (ret)
		(void)snprintf(line + length, sizeof(line) - length, ": %s", strerror(-ret));
	keep_first(line);
	print_line(CRIU_ERROR, line);
	return ret;
}

int log_refusal(bool force, int ret, const char *format, ...)
{
	char line[LOG_LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line) - CAUSE_SIZE, format, arguments);
	va_end(arguments);
	if (!force)
		return log_error(ret, "%s; AMDGPU_FORCE=1 relaxes this", line);
	log_warn("%s; ignored, because AMDGPU_FORCE is set", line);
	return 0;
}

#define DEFINE_LOG(name, level)                                         \
	void name(const char *format, ...)                              \
	{                                                               \
		char line[LOG_LINE_SIZE];                               \
		va_list arguments;                                      \
                                                                        \
		va_start(arguments, format);                            \
		(void)vsnprintf(line, sizeof(line), format, arguments); \
		va_end(arguments);                                      \
		print_line(level, line);                                \
	}

DEFINE_LOG(log_warn, CRIU_WARN)
DEFINE_LOG(log_info, CRIU_INFO)
DEFINE_LOG(log_debug, CRIU_DEBUG)
