/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of a tool. Included by a tool once, after it has defined TOOL: the
 * format of its name and pid in the log. */
#ifndef TEST_VM_TOOLS_SAY_H
#define TEST_VM_TOOLS_SAY_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *log_path;

/* Adds a line. It is in the file when this returns. */
static void say(const char *format, ...)
{
	FILE *log = fopen(log_path, "ae");
	va_list args;

	if (!log)
		exit(2);
	fprintf(log, TOOL, (int)getpid());
	va_start(args, format);
	vfprintf(log, format, args);
	va_end(args);
	fputc('\n', log);
	if (fclose(log))
		exit(2);
}

/* Ends the tool unless @ok, and logs errno. */
static void need(int ok, const char *what)
{
	if (ok)
		return;
	say("FAILED: %s: %s", what, strerror(errno));
	exit(1);
}

#endif
