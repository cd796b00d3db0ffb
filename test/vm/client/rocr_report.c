// SPDX-License-Identifier: GPL-2.0-only
/* Complaints of the steps on ROCr become failures in the client's log. */
#include "rocr_report.h"

#include <stdarg.h>
#include <stdio.h>

#include "rocr.h"

static struct report report;

struct report *rocr_report_init(const char *path)
{
	report_init(&report, path);
	return &report;
}

bool rocr_say(const char *format, ...)
{
	char text[sizeof(report.failure)];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return report_fail(&report, false, "%s", text);
}
