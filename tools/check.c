// SPDX-License-Identifier: GPL-2.0-only
/* Whether this machine, or a process, can be dumped. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "text.h"

static void print_line(FILE *to, const char *colour, const char *head, const char *format,
		       va_list arguments)
{
	(void)fprintf(to, "%s%s%s", text_colour(to, colour), head, text_colour(to, TEXT_PLAIN));
	(void)vfprintf(to, format, arguments);
	(void)fputc('\n', to);
}

void check_say_ok(const struct check *check, const char *format, ...)
{
	va_list arguments;

	if (check->quiet)
		return;
	va_start(arguments, format);
	print_line(stdout, TEXT_GREEN, "ok  ", format, arguments);
	va_end(arguments);
}

void check_refuse(struct check *check, const char *format, ...)
{
	va_list arguments;

	check->refused = true;
	(void)fflush(stdout);
	va_start(arguments, format);
	print_line(stderr, TEXT_RED, "criu-amdgpu: ", format, arguments);
	va_end(arguments);
}

static void check_done(struct check *check)
{
	options_done(&check->options);
	topology_done(&check->topology);
}

/* What to do next. */
static void advise(const struct check *check, bool has_gpu)
{
	if (check->quiet || (has_gpu && check->refused))
		return;
	if (has_gpu)
		printf("now run criu-amdgpu selftest, which tries a dump and a restore\n");
	else
		printf("a machine needs a GPU of gfx9 or gfx10, and amdgpu of Linux 5.18 or newer\n");
}

static int examine_machine(struct check *check)
{
	bool has_gpu = false;

	check_criu(check);
	if (check->request->dir)
		check_room(check);
	check_machine(check, &has_gpu);
	advise(check, has_gpu);
	return has_gpu ? TOOL_YES : TOOL_NO_GPU;
}

static int examine_process(struct check *check)
{
	_cleanup_(pid_list_done) struct pid_list tree = { 0 };
	bool has_gpu = false, uses_gpu = false;
	int ret = check_find_process(check, &tree);

	if (ret != TOOL_YES)
		return ret;
	check->quiet = true;
	check_machine(check, &has_gpu);
	check->quiet = check->request->quiet;
	if (!has_gpu)
		return TOOL_NO_GPU;
	ret = check_process(check, &tree, &uses_gpu);
	if (ret != TOOL_YES)
		return ret;
	if (uses_gpu)
		check_rights(&tree);
	if (check->request->dir)
		check_room(check);
	return uses_gpu ? TOOL_YES : TOOL_NO_GPU;
}

int check_run(const struct tool_request *request)
{
	_cleanup_(check_done) struct check check = { .request = request, .quiet = request->quiet };
	int ret;

	if (options_read(&check.options) < 0)
		check.refused = true;
	else if (!request->pid)
		check_say_ok(&check, "options: valid, from %sthe environment",
			     access(OPTIONS_FILE, F_OK) ? "" : OPTIONS_FILE " and ");
	ret = request->pid ? examine_process(&check) : examine_machine(&check);
	if (ret != TOOL_YES)
		return ret;
	return check.refused ? TOOL_NO : TOOL_YES;
}
