/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes log lines with one write() each, so that several processes share a file, and keeps the
 * first failure. It decides nothing about what happens after a failure. */
#include "report.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void report_init(struct report *report, const char *path)
{
	memset(report, 0, sizeof(*report));
	report->path = path;
	pthread_mutex_init(&report->lock, NULL);
}

static void report_write(struct report *report, const char *kind, const char *text)
{
	char line[600];
	int len, fd = STDERR_FILENO;

	len = snprintf(line, sizeof(line), "client %d: %s%s\n", (int)getpid(), kind, text);
	if (report->path)
		fd = open(report->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	/* If the log cannot be written, there is no other way to report it. */
	if (write(fd, line, (size_t)len) != len)
		(void)!write(STDERR_FILENO, line, (size_t)len);
	if (report->path)
		close(fd);
}

void report_line(struct report *report, const char *format, ...)
{
	char text[500];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	report_write(report, "", text);
}

int report_fail(struct report *report, int ret, const char *format, ...)
{
	char text[sizeof(report->failure)];
	va_list args;
	bool first;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	pthread_mutex_lock(&report->lock);
	first = !report->failed;
	report->failed = true;
	if (first)
		memcpy(report->failure, text, sizeof(report->failure));
	pthread_mutex_unlock(&report->lock);

	if (first)
		report_write(report, "FAILED: ", text);
	return ret;
}

bool report_failed(struct report *report)
{
	bool failed;

	pthread_mutex_lock(&report->lock);
	failed = report->failed;
	pthread_mutex_unlock(&report->lock);
	return failed;
}

void report_failed_again(struct report *report)
{
	pthread_mutex_lock(&report->lock);
	report_write(report, "FAILED: ", report->failure);
	pthread_mutex_unlock(&report->lock);
}
