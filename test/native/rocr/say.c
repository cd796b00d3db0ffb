// SPDX-License-Identifier: GPL-2.0-only
/* The programs of this folder complain on standard output. */
#include <stdarg.h>
#include <stdio.h>

#include "rocr.h"

void rocr_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)putchar('\n');
}
