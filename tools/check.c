// SPDX-License-Identifier: GPL-2.0-only
/* Whether this machine can dump processes on its GPUs. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

static void print_line(FILE *to, const char *head, const char *format, va_list arguments)
{
	(void)fputs(head, to);
	(void)vfprintf(to, format, arguments);
	(void)fputc('\n', to);
}

void check_say_ok(const struct check *check, const char *format, ...)
{
	va_list arguments;

	if (check->request->quiet)
		return;
	va_start(arguments, format);
	print_line(stdout, "ok  ", format, arguments);
	va_end(arguments);
}

void check_refuse(struct check *check, const char *format, ...)
{
	va_list arguments;

	check->refused = true;
	(void)fflush(stdout);
	va_start(arguments, format);
	print_line(stderr, "criu-amdgpu: ", format, arguments);
	va_end(arguments);
}

static void check_done(struct check *check)
{
	options_done(&check->options);
	topology_done(&check->topology);
}

int check_run(const struct tool_request *request)
{
	_cleanup_(check_done) struct check check = { .request = request };
	bool has_gpu = false;

	if (options_read(&check.options) < 0)
		check.refused = true;
	else
		check_say_ok(&check, "options: %s and the environment are valid", OPTIONS_FILE);
	check_criu(&check);
	if (request->dir)
		check_room(&check);
	check_machine(&check, &has_gpu);
	if (!has_gpu)
		return TOOL_NO_GPU;
	return check.refused ? TOOL_NO : TOOL_YES;
}
