// SPDX-License-Identifier: GPL-2.0-only
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

static int open_one(const char *path, FILE **ret_file)
{
	if (!path)
		return 0;
	*ret_file = fopen(path, "we");
	return *ret_file ? 0 : -errno;
}

int report_open(struct report_files *files, const char *log, const char *violations)
{
	int ret = open_one(log, &files->log);

	return ret < 0 ? ret : open_one(violations, &files->violations);
}

void report_close(struct report_files *files)
{
	if (files->log)
		(void)fclose(files->log);
	if (files->violations)
		(void)fclose(files->violations);
	files->log = NULL;
	files->violations = NULL;
}

bool report_shows(const struct report *report, enum report_level level)
{
	return report->files && report->files->log && level <= report->files->level;
}

static void write_log(struct report *report, const char *format, va_list arguments)
{
	FILE *log = report->files->log;
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)fprintf(log, "%6ld.%03ld %s", (long)now.tv_sec, now.tv_nsec / 1000000, report->name);
	(void)vfprintf(log, format, arguments);
	(void)fputc('\n', log);
}

void report_log(struct report *report, enum report_level level, const char *format, ...)
{
	va_list arguments;

	if (!report_shows(report, level))
		return;
	va_start(arguments, format);
	write_log(report, format, arguments);
	va_end(arguments);
}

/* A violation is on disk at once, because the test ends the device with a signal. */
void report_violation(struct report *report, const char *format, ...)
{
	char text[REPORT_TEXT];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (report->num_violations < REPORT_KEPT)
		(void)snprintf(report->kept[report->num_violations], REPORT_TEXT, "%s", text);
	report->num_violations++;
	report_log(report, REPORT_ALWAYS, "VIOLATION: %s", text);
	if (!report->files || !report->files->violations)
		return;
	(void)fprintf(report->files->violations, "%s%s\n", report->name, text);
	(void)fflush(report->files->violations);
}

void report_forget(struct report *report)
{
	FILE *file = report->files ? report->files->violations : NULL;

	report->num_violations = 0;
	if (!file)
		return;
	rewind(file);
	(void)!ftruncate(fileno(file), 0);
}
